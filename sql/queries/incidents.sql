-- Refusals that are many at once, and the receipts that watch for them.

-- name: forget_refusals
-- Deletes refusals and counts older than $1 seconds, of apps without a running incident.
WITH old AS (
    SELECT date_trunc('minute', now() - make_interval(secs => $1::float8)) AS at
), forgotten AS (
    DELETE FROM ledger.refusal f USING old
    WHERE f.counts AND f.refused_at < old.at
      AND NOT EXISTS (
          SELECT FROM ledger.incident i WHERE i.app_id = f.app_id AND i.kind = 'refusals' AND i.closed_at IS NULL)
)
DELETE FROM ledger.verified_minute v USING old
WHERE v.minute < old.at
  AND NOT EXISTS (SELECT FROM ledger.incident i WHERE i.app_id = v.app_id AND i.closed_at IS NULL)

-- name: open_incidents
-- Opens an incident for each app with too many canaries (once-verified receipts) refused in the last $1 seconds: at
-- least $2 receipts, and more than $3 percent of the answers about such receipts.
WITH refused AS (
    SELECT f.app_id, count(*) AS receipts, min(f.refused_at) AS since
    FROM ledger.refusal f
    WHERE f.once_verified AND f.is_canary AND f.refused_at > now() - make_interval(secs => $1::float8)
    GROUP BY f.app_id HAVING count(*) >= $2::int
)
INSERT INTO ledger.incident (app_id, kind, opened_at, recognised_at, asked, refused, last_reason)
SELECT r.app_id, 'refusals', LEAST(r.since, now()), now(), r.receipts + verified.answers, r.receipts, (
    SELECT f.reason FROM ledger.refusal f
    WHERE f.app_id = r.app_id AND f.once_verified AND f.is_canary ORDER BY f.refused_at DESC LIMIT 1)
FROM refused r
CROSS JOIN LATERAL (
    SELECT COALESCE(sum(v.answers), 0)::bigint AS answers FROM ledger.verified_minute v
    WHERE v.app_id = r.app_id AND v.minute >= date_trunc('minute', now() - make_interval(secs => $1::float8))) verified
WHERE r.receipts * 100 > (r.receipts + verified.answers) * $3::int
ON CONFLICT (app_id, kind) WHERE closed_at IS NULL DO NOTHING

-- name: close_clock_incidents
-- Updates running incidents of wrong clocks. Closes those without such an answer for $1 seconds, if Apple vouched for a
-- receipt of the app since the last one.
WITH standing AS MATERIALIZED (
    SELECT i.incident_id, verified.answers AS verified,
           i.last_at < now() - make_interval(secs => $1::float8) AND verified.lately > 0 AS is_over
    FROM ledger.incident i
    CROSS JOIN LATERAL (
        SELECT COALESCE(sum(v.answers), 0)::bigint AS answers,
               COALESCE(sum(v.answers) FILTER (WHERE v.minute > i.last_at), 0)::bigint AS lately
        FROM ledger.verified_minute v
        WHERE v.app_id = i.app_id AND v.minute >= date_trunc('minute', i.opened_at)) verified
    WHERE i.kind = 'clock' AND i.closed_at IS NULL
    ORDER BY i.app_id
    FOR NO KEY UPDATE OF i
)
UPDATE ledger.incident i SET asked = i.refused + s.verified, closed_at = CASE WHEN s.is_over THEN now() END
FROM standing s WHERE i.incident_id = s.incident_id

-- name: close_incidents
-- Updates running incidents and closes those that are over. An incident is over when it was recognised at least $1
-- seconds ago and, in the last $1 seconds or since the last refused canary if that is longer ago, at least $2 answers
-- vouched and at most $3 percent refused. A receipt refused again counts once: it may be gone, whatever Apple's health.
WITH running AS (
    SELECT i.incident_id, i.app_id, i.opened_at, i.recognised_at <= quiet.since AS is_old, refused.receipts AS refused,
           LEAST(quiet.since, refused.last_at) AS since
    FROM ledger.incident i
    CROSS JOIN (SELECT now() - make_interval(secs => $1::float8) AS since) quiet
    CROSS JOIN LATERAL (
        SELECT count(*) AS receipts, max(f.refused_at) AS last_at
        FROM ledger.refusal f WHERE f.app_id = i.app_id AND f.once_verified AND f.is_canary) refused
    WHERE i.kind = 'refusals' AND i.closed_at IS NULL
), standing AS (
    SELECT r.*, verified.answers AS verified, verified.lately, (
        SELECT count(*) FROM ledger.refusal f
        WHERE f.app_id = r.app_id AND f.once_verified AND f.is_canary AND f.refused_at > r.since) AS refused_lately
    FROM running r
    CROSS JOIN LATERAL (
        SELECT COALESCE(sum(v.answers), 0)::bigint AS answers,
               COALESCE(sum(v.answers) FILTER (WHERE v.minute > r.since), 0)::bigint AS lately
        FROM ledger.verified_minute v
        WHERE v.app_id = r.app_id AND v.minute >= date_trunc('minute', r.opened_at)) verified
)
UPDATE ledger.incident i
SET refused = s.refused, asked = s.refused + s.verified, last_reason = COALESCE((
        SELECT f.reason FROM ledger.refusal f
        WHERE f.app_id = s.app_id AND f.once_verified AND f.is_canary ORDER BY f.refused_at DESC LIMIT 1), i.last_reason),
    closed_at = CASE WHEN s.is_old AND s.lately >= $2::int
        AND s.refused_lately * 100 <= (s.refused_lately + s.lately) * $3::int THEN now() END
FROM standing s WHERE i.incident_id = s.incident_id

-- name: take_refusals_back
-- Reverses refusals that came before their app's incident was recognised, at most $1: they no longer count, and a
-- receipt that they retired is scheduled again, in an hour. A locked schedule row is being checked, settled or uploaded
-- at this moment; its receipt's turn is next time. Returns the receipts.
WITH refused AS MATERIALIZED (
    SELECT f.receipt_id, f.app_id, f.once_verified, f.rejections_before, s.receipt_id IS NULL AS retired
    FROM ledger.incident i JOIN ledger.refusal f USING (app_id)
    LEFT JOIN ledger.poll_schedule s USING (receipt_id)
    WHERE i.kind = 'refusals' AND i.closed_at IS NULL AND f.counts
    ORDER BY f.receipt_id LIMIT $1::int
), idle AS MATERIALIZED (
    SELECT s.receipt_id FROM ledger.poll_schedule s
    WHERE s.receipt_id IN (SELECT receipt_id FROM refused)
    FOR NO KEY UPDATE SKIP LOCKED
), taken AS MATERIALIZED (
    SELECT * FROM refused WHERE retired OR receipt_id IN (SELECT receipt_id FROM idle)
), scheduled AS (
    INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
    SELECT t.receipt_id, t.app_id, CASE WHEN t.once_verified THEN 'sweep'::ledger.lane ELSE 'import' END, hour.at, hour.at,
           r.environment IS NOT DISTINCT FROM 'Sandbox'
    FROM taken t JOIN ledger.receipt r USING (receipt_id) CROSS JOIN (SELECT now() + interval '1 hour' AS at) hour
    WHERE t.retired ORDER BY t.receipt_id
    ON CONFLICT DO NOTHING
), restored AS (
    UPDATE ledger.receipt r
    SET rejections = LEAST(r.rejections, t.rejections_before),
        rejected_since = CASE WHEN LEAST(r.rejections, t.rejections_before) > 0 THEN r.rejected_since END
    FROM taken t WHERE r.receipt_id = t.receipt_id
)
UPDATE ledger.refusal f SET counts = false FROM taken t WHERE f.receipt_id = t.receipt_id
RETURNING f.receipt_id

-- name: ask_refused_again
-- Schedules receipts refused during incidents that are over for another check, at most $1 receipts. It spreads them so
-- that about $2 of an incident come due a second, but all within $3 seconds. Receipts verified since then need no
-- check; leased or locked ones are being checked already. Returns the receipts.
WITH ended AS MATERIALIZED (
    SELECT f.receipt_id,
           now() + make_interval(secs => random() * LEAST($3::float8, last.refused / $2::float8)) AS due_at
    FROM ledger.refusal f
    CROSS JOIN LATERAL (
        SELECT i.refused, i.closed_at FROM ledger.incident i
        WHERE i.app_id = f.app_id AND i.kind = 'refusals' ORDER BY i.incident_id DESC LIMIT 1) last
    WHERE NOT f.counts AND last.closed_at IS NOT NULL
    ORDER BY f.receipt_id LIMIT $1::int
), idle AS MATERIALIZED (
    SELECT s.receipt_id, e.due_at
    FROM ended e JOIN ledger.poll_schedule s USING (receipt_id) JOIN ledger.receipt r USING (receipt_id)
    WHERE s.leased_by IS NULL AND s.due_at > e.due_at AND r.outcome <> 'verified'
    FOR NO KEY UPDATE OF s SKIP LOCKED
), hastened AS (
    UPDATE ledger.poll_schedule s SET due_at = idle.due_at, scheduled_for = idle.due_at
    FROM idle WHERE s.receipt_id = idle.receipt_id
)
DELETE FROM ledger.refusal f USING ended e WHERE f.receipt_id = e.receipt_id
RETURNING f.receipt_id

-- name: lock_incidents
-- Makes this transaction the only one that opens and closes incidents, or reports that another one is at work.
SELECT pg_try_advisory_xact_lock(hashtext('ledger.watch_canaries')) AS locked

-- name: read_incidents
-- Settlement: returns which of the apps ($1) have a running incident because Apple refuses receipts in bulk.
SELECT i.app_id FROM ledger.incident i WHERE i.app_id = ANY($1::int[]) AND i.kind = 'refusals' AND i.closed_at IS NULL

-- name: insert_refusals
-- Settlement: records the first refusal of receipts while an incident may still result from it ($1 receipts, $2 apps,
-- $3 when, $4 verified before, $5 whether it counts, $6 rejections before it, $7 reasons, $8 canaries).
INSERT INTO ledger.refusal (receipt_id, app_id, refused_at, once_verified, counts, rejections_before, reason, is_canary)
SELECT n.receipt_id, n.app_id, $3::timestamptz, n.once_verified, n.counts, n.rejections_before, n.reason, n.is_canary
FROM unnest($1::bigint[], $2::int[], $4::boolean[], $5::boolean[], $6::smallint[], $7::text[], $8::boolean[])
    AS n(receipt_id, app_id, once_verified, counts, rejections_before, reason, is_canary)
ORDER BY n.receipt_id
ON CONFLICT DO NOTHING

-- name: open_clock_incidents
-- Settlement: opens or continues incidents of wrong clocks ($1 apps, $2 answers that were not believed, $3 reasons, $4
-- when).
INSERT INTO ledger.incident AS i (app_id, kind, opened_at, recognised_at, last_at, asked, refused, last_reason)
SELECT n.app_id, 'clock', $4::timestamptz, $4::timestamptz, $4::timestamptz, n.answers, n.answers, n.reason
FROM unnest($1::int[], $2::bigint[], $3::text[]) AS n(app_id, answers, reason)
ORDER BY n.app_id
ON CONFLICT (app_id, kind) WHERE closed_at IS NULL DO UPDATE
SET asked = i.asked + EXCLUDED.asked, refused = i.refused + EXCLUDED.refused, last_reason = EXCLUDED.last_reason,
    last_at = GREATEST(i.last_at, EXCLUDED.last_at)
