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
