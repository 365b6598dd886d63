-- What is due, the budget of calls, and the claim of receipts.

-- name: start_worker
-- Registers a worker: host $1, process $2; $3 true: it checks single receipts on request, so no work depends on it; $4
-- its lease seconds and $5 its speed-up.
INSERT INTO ledger.worker (host, pid, stopped_at, lease_seconds, speedup)
VALUES ($1::text, $2::int, CASE WHEN $3::boolean THEN now() END, $4::float8, $5::int)
RETURNING worker_id

-- name: store_heartbeat
-- Records a heartbeat of worker $1; if $2 is true, that it stopped. What checks single receipts on request never counts as a
-- worker. Returns how many migrations a program must know to go on.
UPDATE ledger.worker w
SET heartbeat_at = now(),
    stopped_at = CASE WHEN $2::boolean THEN now() WHEN w.stopped_at = w.started_at THEN w.stopped_at END
WHERE w.worker_id = $1::int
RETURNING (SELECT program_min FROM ledger.compatibility) AS program_min

-- name: free_leases
-- Makes due what processes had leased that are gone, at most $1 receipts of each app and lane; returns how many. Only first
-- leases: what crashed a process before waits for the end of its lease. No lease outlives its owner's last heartbeat by
-- more than itself, so only the beginning of the due index is read, and nothing where no process is gone.
WITH gone AS MATERIALIZED (
    SELECT w.worker_id, COALESCE(w.lease_seconds, 60) AS seconds FROM ledger.worker w
    WHERE ledger.gone_at(w) <= now()
      AND w.heartbeat_at > now() - make_interval(secs => COALESCE(w.lease_seconds, 60) + 5)
), held AS MATERIALIZED (
    SELECT due.receipt_id
    FROM ledger.app a
    CROSS JOIN unnest(enum_range(NULL::ledger.lane)) l(lane)
    CROSS JOIN LATERAL (
        SELECT s.receipt_id FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.crashes = 0
          AND s.due_at > now() AND s.due_at <= now() + make_interval(secs => (SELECT max(g.seconds) FROM gone g))
          AND s.leased_by IN (SELECT g.worker_id FROM gone g)
        ORDER BY s.due_at LIMIT $1::int
        FOR NO KEY UPDATE SKIP LOCKED) due
    WHERE EXISTS (SELECT FROM gone)
), freed AS (
    UPDATE ledger.poll_schedule s SET due_at = now() FROM held h WHERE s.receipt_id = h.receipt_id RETURNING 1
)
SELECT count(*) AS freed FROM freed

-- name: forget_workers
-- Deletes workers without a heartbeat for $1 days, at most the $2 oldest; returns their number.
WITH old AS MATERIALIZED (
    SELECT worker_id FROM ledger.worker
    WHERE heartbeat_at < now() - make_interval(days => $1::int)
    ORDER BY worker_id LIMIT $2::int
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM ledger.worker w USING old WHERE w.worker_id = old.worker_id RETURNING 1
)
SELECT count(*) AS removed FROM removed

-- name: count_due
-- Counts the receipts of each app and lane due by $2 (null: now), up to $1. Three rules lower the count:
-- * Of each app and lane it counts at most twice an app's even share of $1, or 16 if that is more.
-- * Of an app whose answers fail it counts at most three: enough to test whether Apple answers again.
-- * For the apps $3 and lanes $4 it leaves out receipts due before $5.
-- A paused app has no row until its pause ends. Where Apple refuses the secret in one environment, or the calls of the Server API
-- are paused there and the app asks nothing else, only receipts of the other one count, as in claim; a pause for the secret ends
-- by a trial alone (secret_trial). Each row, and the row without an
-- app when nothing is due, has the time this kept the database busy: the caller's own clock would include the wait for a
-- connection.
WITH held AS MATERIALIZED (
    SELECT t.app_id, bool_or(t.environment = 'Production') AS production, bool_or(t.environment = 'Sandbox') AS sandbox
    FROM (
        SELECT t.app_id, t.environment, 'verify_receipt' AS verifier FROM ledger.secret_trial t WHERE t.paused_since IS NOT NULL
        UNION ALL
        SELECT c.app_id, c.environment, 'server_api' FROM ledger.call_budget c
        WHERE c.endpoint IN ('statuses', 'history') AND c.paused_until > now()) t
    JOIN ledger.app p USING (app_id, verifier)
    GROUP BY t.app_id
), asked AS MATERIALIZED (
    SELECT a.app_id, GREATEST(a.failures, g.failures) > 0 AS is_tried,
           CASE WHEN h.production THEN 'Sandbox' WHEN h.sandbox THEN 'Production' ELSE 'both' END AS environment
    FROM ledger.app_budget a CROSS JOIN ledger.apple_breaker g LEFT JOIN held h ON h.app_id = a.app_id
    WHERE GREATEST(a.paused_until, g.paused_until) <= now() AND (h.production AND h.sandbox) IS NOT TRUE
), waiting AS MATERIALIZED (
    SELECT a.*, l.lane, low.due_at AS low
    FROM asked a
    CROSS JOIN unnest(enum_range(NULL::ledger.lane)) l(lane)
    LEFT JOIN unnest($3::int[], $4::text[]::ledger.lane[], $5::timestamptz[]) AS low(app_id, lane, due_at)
        ON low.app_id = a.app_id AND low.lane = l.lane
    CROSS JOIN LATERAL (
        (SELECT 1 FROM ledger.poll_schedule s
         WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= LEAST($2::timestamptz, now())
           AND s.due_at >= COALESCE(low.due_at, '-infinity')
           AND a.environment <> 'Sandbox' AND NOT (a.environment = 'Production' AND s.is_sandbox)
         ORDER BY s.due_at LIMIT 1)
        UNION ALL
        (SELECT 1 FROM ledger.poll_schedule s
         WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= LEAST($2::timestamptz, now())
           AND s.due_at >= COALESCE(low.due_at, '-infinity') AND a.environment = 'Sandbox' AND s.is_sandbox
         ORDER BY s.due_at LIMIT 1)) first
), share AS MATERIALIZED (
    SELECT LEAST($1::bigint, GREATEST(16, 2 * $1::bigint / GREATEST(1, count(DISTINCT app_id)))) AS receipts FROM waiting
)
SELECT found.app_id, found.lane::text AS lane, found.receipts,
       EXTRACT(epoch FROM clock_timestamp() - statement_timestamp())::float8 AS busy_seconds
FROM (VALUES (1)) one
LEFT JOIN (
    SELECT w.app_id, w.lane, due.receipts
    FROM waiting w
    CROSS JOIN share
    CROSS JOIN LATERAL (SELECT CASE WHEN w.is_tried THEN LEAST(share.receipts, 3) ELSE share.receipts END AS receipts) most
    CROSS JOIN LATERAL (
        -- Each branch but the one that holds ends before it reads. The usual first one reads the index alone.
        SELECT count(*) AS receipts FROM (
            (SELECT 1 FROM ledger.poll_schedule s
             WHERE s.app_id = w.app_id AND s.lane = w.lane AND s.due_at <= LEAST($2::timestamptz, now())
               AND s.due_at >= COALESCE(w.low, '-infinity') AND w.environment = 'both'
             ORDER BY s.due_at LIMIT most.receipts)
            UNION ALL
            (SELECT 1 FROM ledger.poll_schedule s
             WHERE s.app_id = w.app_id AND s.lane = w.lane AND s.due_at <= LEAST($2::timestamptz, now())
               AND s.due_at >= COALESCE(w.low, '-infinity') AND w.environment = 'Production' AND NOT s.is_sandbox
             ORDER BY s.due_at LIMIT most.receipts)
            UNION ALL
            (SELECT 1 FROM ledger.poll_schedule s
             WHERE s.app_id = w.app_id AND s.lane = w.lane AND s.due_at <= LEAST($2::timestamptz, now())
               AND s.due_at >= COALESCE(w.low, '-infinity') AND w.environment = 'Sandbox' AND s.is_sandbox
             ORDER BY s.due_at LIMIT most.receipts)) s) due) found ON true
ORDER BY found.app_id, found.lane

-- name: overdue
-- Counts receipts that were due by $1 and are not checked yet, per app and reason: that the app is paused, or where its
-- secret is refused the receipts' environment. No lease is longer than the longest one for $2 seconds (see claim), so
-- only the beginning of the due index is read.
WITH unasked AS MATERIALIZED (
    SELECT a.app_id, s.is_leased, s.is_sandbox
    FROM ledger.app a
    CROSS JOIN unnest(enum_range(NULL::ledger.lane)) l(lane)
    CROSS JOIN LATERAL (
        SELECT s.leased_by IS NOT NULL AS is_leased, s.is_sandbox
        FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= $1::timestamptz AND s.scheduled_for <= $1::timestamptz
        UNION ALL
        SELECT true, s.is_sandbox
        FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at > $1::timestamptz
          AND s.due_at <= now() + make_interval(secs => $2::float8 * CASE l.lane WHEN 'quarantine' THEN 1024 ELSE 64 END)
          AND s.leased_by IS NOT NULL AND s.scheduled_for <= $1::timestamptz) s
)
SELECT a.bundle_id, count(*) AS receipts, count(*) FILTER (WHERE u.is_leased) AS leased,
       CASE WHEN b.paused_until > now() THEN b.paused_because WHEN g.paused_until > now() THEN g.paused_because
            ELSE held.because END AS paused_because
FROM unasked u JOIN ledger.app a USING (app_id) JOIN ledger.app_budget b USING (app_id)
CROSS JOIN ledger.apple_breaker g
LEFT JOIN (
    SELECT a.app_id, e.is_sandbox, ledger.secret_pause(a.app_id, e.is_sandbox) AS because
    FROM ledger.app a CROSS JOIN (VALUES (false), (true)) e(is_sandbox)) held
    ON held.app_id = u.app_id AND held.is_sandbox = u.is_sandbox
GROUP BY a.bundle_id, 4 ORDER BY a.bundle_id, 4

-- name: take_budget
-- Reserves calls for apps ($1 ids, $2 wanted) and returns how many each may make now; a rate of 0 is unlimited. If
-- Apple asked for fewer calls of an app, its burst is smaller too; while a breaker is open there are none.
WITH want AS (
    SELECT * FROM unnest($1::int[], $2::int[]) AS w(app_id, wanted)
), current AS MATERIALIZED (
    SELECT b.app_id, b.tokens, pace.rate, w.wanted,
           GREATEST(b.paused_until, g.paused_until) > clock.at AS is_open, clock.at,
           LEAST(
               CASE b.rate WHEN 0 THEN GREATEST(1, pace.rate) ELSE GREATEST(1, b.burst * pace.rate / b.rate) END,
               b.tokens + pace.rate * GREATEST(0, EXTRACT(epoch FROM clock.at - b.refilled_at))) AS available
    FROM ledger.app_budget b JOIN want w USING (app_id)
    CROSS JOIN ledger.apple_breaker g
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS at) clock
    CROSS JOIN LATERAL (SELECT ledger.calls_a_second(b.rate, b.slowed_to, b.slowed_at, clock.at) AS rate) pace
    ORDER BY b.app_id
    FOR NO KEY UPDATE OF b
)
UPDATE ledger.app_budget b
SET tokens = CASE WHEN c.rate = 0 THEN b.tokens ELSE c.available - g.granted END,
    refilled_at = c.at
FROM current c
CROSS JOIN LATERAL (
    SELECT CASE WHEN c.is_open THEN 0
                WHEN c.rate = 0 THEN c.wanted
                ELSE LEAST(c.wanted, floor(c.available))::int END AS granted) g
WHERE b.app_id = c.app_id
RETURNING b.app_id, g.granted

-- name: claim
-- Leases due receipts: worker $1, lease seconds $2, quotas ($3 apps, $4 lanes, $5 counts, $8 due at that time or
-- later, $9 in that environment alone), at $6 (null: now), among those due by $7 (null: the same). A receipt whose
-- workers crashed three times is not leased: it moves to quarantine, where it is checked alone. It is returned too, so that
-- other receipts take over what it polls. A quota for the sandbox alone reads no row of production: an index of its own
-- has the sandbox's.
WITH clock AS MATERIALIZED (
    SELECT COALESCE($6::timestamptz, now()) AS at
), quota AS MATERIALIZED (
    SELECT q.app_id, q.lane, q.receipts, q.low, q.environment IS NOT DISTINCT FROM 'Sandbox' AS only_sandbox,
           q.environment IS NOT DISTINCT FROM 'Production' AS only_production
    FROM unnest($3::int[], $4::text[]::ledger.lane[], $5::int[], $8::timestamptz[], $9::text[])
        AS q(app_id, lane, receipts, low, environment)
), pick AS MATERIALIZED (
    SELECT due.row, due.due_at, due.crashes, q.lane <> 'quarantine' AND due.crashes >= 3 AS quarantined
    FROM quota q
    CROSS JOIN LATERAL (
        SELECT s.ctid AS row, s.due_at, LEAST(s.crashes + (s.leased_by IS NOT NULL)::int, 32000) AS crashes
        FROM ledger.poll_schedule s
        WHERE s.app_id = q.app_id AND s.lane = q.lane AND s.due_at <= (SELECT LEAST($7::timestamptz, at) FROM clock)
          AND s.due_at >= COALESCE(q.low, '-infinity') AND NOT (q.only_production AND s.is_sandbox)
        ORDER BY s.due_at LIMIT q.receipts
        FOR NO KEY UPDATE SKIP LOCKED) due
    WHERE NOT q.only_sandbox
    UNION ALL
    SELECT due.row, due.due_at, due.crashes, q.lane <> 'quarantine' AND due.crashes >= 3 AS quarantined
    FROM quota q
    CROSS JOIN LATERAL (
        SELECT s.ctid AS row, s.due_at, LEAST(s.crashes + (s.leased_by IS NOT NULL)::int, 32000) AS crashes
        FROM ledger.poll_schedule s
        WHERE s.app_id = q.app_id AND s.lane = q.lane AND s.due_at <= (SELECT LEAST($7::timestamptz, at) FROM clock)
          AND s.due_at >= COALESCE(q.low, '-infinity') AND s.is_sandbox
        ORDER BY s.due_at LIMIT q.receipts
        FOR NO KEY UPDATE SKIP LOCKED) due
    WHERE q.only_sandbox
), leased AS (
    UPDATE ledger.poll_schedule s
    SET lane = CASE WHEN pick.quarantined THEN 'quarantine' ELSE s.lane END,
        due_at = CASE WHEN pick.quarantined THEN clock.at
            ELSE clock.at + make_interval(
                secs => $2::float8 * (1 << LEAST(pick.crashes, CASE s.lane WHEN 'quarantine' THEN 10 ELSE 6 END))) END,
        lease_token = nextval('ledger.lease_token_seq'),
        leased_by = CASE WHEN NOT pick.quarantined THEN $1::int END,
        attempts = LEAST(s.attempts + 1, 32000),
        crashes = pick.crashes,
        scheduled_for = LEAST(s.scheduled_for, CASE WHEN s.want_at <= clock.at THEN s.want_at END),
        want_at = CASE WHEN s.want_at > clock.at THEN s.want_at END
    FROM pick CROSS JOIN clock WHERE s.ctid = pick.row
    RETURNING s.receipt_id, s.app_id, s.lane, s.lease_token, s.attempts, s.scheduled_for, s.fingerprint,
              s.meaning, s.polled, pick.due_at, pick.quarantined
)
SELECT l.receipt_id, l.quarantined, l.app_id, l.lane::text AS lane, l.lease_token, l.attempts, l.scheduled_for, l.due_at,
       l.fingerprint, l.meaning, l.polled, clock.at AS claimed_at,
       r.form::text AS form, r.vouched, r.transaction_id, r.history_revision,
       r.environment::text AS environment, l.attempts % 2 = 1 AND r.latest_receipt IS NOT NULL AS asks_latest,
       CASE WHEN l.attempts % 2 = 1 THEN COALESCE(r.latest_receipt, r.data) ELSE r.data END AS data
FROM leased l JOIN ledger.receipt r USING (receipt_id) CROSS JOIN clock
ORDER BY l.receipt_id

-- name: claim_one
-- Leases one receipt at once, due or not: worker $1, lease seconds $2, receipt $3; nothing while another worker has a
-- lease, unless that one is gone and it is the first lease that a process left behind. A lease of the worker itself is left over from an interrupted check, because it runs one check of a receipt at
-- a time.
WITH leased AS (
    INSERT INTO ledger.poll_schedule AS s
        (receipt_id, app_id, lane, due_at, scheduled_for, lease_token, leased_by, attempts, is_sandbox)
    SELECT r.receipt_id, r.app_id, 'expiring', now() + make_interval(secs => $2::float8), now(),
           nextval('ledger.lease_token_seq'), $1::int, 1, r.environment IS NOT DISTINCT FROM 'Sandbox'
    FROM ledger.receipt r WHERE r.receipt_id = $3::bigint AND r.erased_at IS NULL
    ON CONFLICT (receipt_id) DO UPDATE
    SET due_at = now() + make_interval(secs => $2::float8),
        lease_token = EXCLUDED.lease_token,
        leased_by = $1::int,
        crashes = CASE WHEN s.leased_by <> $1::int THEN LEAST(s.crashes + 1, 32000) ELSE s.crashes END,
        attempts = LEAST(s.attempts + 1, 32000),
        scheduled_for = LEAST(s.scheduled_for, CASE WHEN s.want_at <= now() THEN s.want_at END),
        want_at = CASE WHEN s.want_at > now() THEN s.want_at END
    WHERE s.leased_by IS NULL OR s.leased_by = $1::int OR s.due_at <= now()
       OR s.crashes = 0 AND EXISTS (
           SELECT FROM ledger.worker w WHERE w.worker_id = s.leased_by AND ledger.gone_at(w) <= now())
    RETURNING s.receipt_id, s.app_id, s.lane, s.lease_token, s.attempts, s.scheduled_for, s.fingerprint,
              s.meaning, s.polled
)
SELECT l.receipt_id, l.app_id, l.lane::text AS lane, l.lease_token, l.attempts, l.scheduled_for, now() AS due_at,
       l.fingerprint, l.meaning, l.polled,
       now() AS claimed_at,
       r.form::text AS form, r.vouched, r.transaction_id, r.history_revision,
       r.environment::text AS environment, l.attempts % 2 = 1 AND r.latest_receipt IS NOT NULL AS asks_latest,
       CASE WHEN l.attempts % 2 = 1 THEN COALESCE(r.latest_receipt, r.data) ELSE r.data END AS data
FROM leased l JOIN ledger.receipt r USING (receipt_id)

-- name: take_call
-- Takes one call of the Server API from the budget of app $1, environment $2 and kind of call $3: $4 calls a second, $5 at
-- once. Returns whether it may be made, and else the seconds after which to ask again.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS at
), taken AS (
    INSERT INTO ledger.call_budget AS b (app_id, environment, endpoint, tokens, refilled_at)
    SELECT $1::int, $2::text::ledger.environment, $3::text, GREATEST(0, $5::float8 - 1), clock.at FROM clock
    ON CONFLICT (app_id, environment, endpoint) DO UPDATE
    SET tokens = LEAST($5::float8, b.tokens + $4::float8
            * GREATEST(0, EXTRACT(epoch FROM EXCLUDED.refilled_at - b.refilled_at))::float8) - 1,
        refilled_at = GREATEST(b.refilled_at, EXCLUDED.refilled_at)
    WHERE b.paused_until <= EXCLUDED.refilled_at
      AND LEAST($5::float8, b.tokens + $4::float8
            * GREATEST(0, EXTRACT(epoch FROM EXCLUDED.refilled_at - b.refilled_at))::float8) >= 1
    RETURNING 1
)
SELECT EXISTS (SELECT FROM taken) AS granted,
       (SELECT GREATEST(
            0.01, EXTRACT(epoch FROM GREATEST(b.paused_until, 'epoch') - clock.at)::float8,
            (1 - b.tokens) / $4::float8 - EXTRACT(epoch FROM clock.at - b.refilled_at)::float8)
        FROM ledger.call_budget b CROSS JOIN clock
        WHERE b.app_id = $1::int AND b.environment = $2::text::ledger.environment AND b.endpoint = $3::text) AS wait_seconds

-- name: return_budget
-- Returns reserved calls that were not made to the budget: apps $1, calls $2.
UPDATE ledger.app_budget b SET tokens = LEAST(b.burst, b.tokens + n.calls)
FROM unnest($1::int[], $2::int[]) AS n(app_id, calls)
WHERE b.app_id = n.app_id AND b.rate > 0

-- name: release
-- Releases claimed receipts unchecked ($1 worker, $2 receipts, $3 lease tokens): they are due again at once, and the
-- attempt does not count. An imported one returns to the front of its queue. Returns the receipts that $4 earlier
-- attempts or more brought no answer.
UPDATE ledger.poll_schedule s
SET due_at = CASE s.lane WHEN 'import' THEN timestamptz '1900-01-01 00:00:00Z' ELSE LEAST(s.scheduled_for, s.want_at) END,
    scheduled_for = LEAST(s.scheduled_for, s.want_at), want_at = NULL, leased_by = NULL, attempts = GREATEST(s.attempts - 1, 0)
FROM unnest($2::bigint[], $3::bigint[]) AS c(receipt_id, lease_token)
WHERE s.receipt_id = c.receipt_id AND s.lease_token = c.lease_token AND s.leased_by = $1::int
RETURNING CASE WHEN s.attempts >= $4::int THEN s.receipt_id END AS fruitless

-- name: pause_calls
-- Stops calls of kind $3 about app $1 in environment $2 for $4 seconds; a pause that lasts longer stays.
INSERT INTO ledger.call_budget AS b (app_id, environment, endpoint, tokens, refilled_at, paused_until)
VALUES ($1::int, $2::text::ledger.environment, $3::text, 0, now(), now() + make_interval(secs => $4::float8))
ON CONFLICT (app_id, environment, endpoint) DO UPDATE
SET paused_until = GREATEST(b.paused_until, EXCLUDED.paused_until), tokens = 0, refilled_at = now()

-- name: lock_rate_limit
-- Locks the rate limit of app $1 and reads it with the clock.
SELECT b.rate, b.slowed_to, b.slowed_at, b.failures, GREATEST(b.paused_until, 'epoch') AS app_paused_until, clock_timestamp() AS at
FROM ledger.app_budget b WHERE b.app_id = $1::int
FOR NO KEY UPDATE

-- name: write_rate_limit
-- Stores the rate limit of app $1: slowed to $2 calls a second at $3 (null: not at all), $4 failed rounds; no calls for
-- $5 seconds (0: go on) because of $6. Calls saved up at a faster rate are lost.
UPDATE ledger.app_budget
SET slowed_to = $2::float8, slowed_at = $3::timestamptz, failures = $4::smallint,
    tokens = CASE WHEN $3::timestamptz IS DISTINCT FROM slowed_at THEN LEAST(tokens, 1) ELSE tokens END,
    paused_until = GREATEST(paused_until, clock_timestamp() + make_interval(secs => $5::float8)),
    -- A shorter pause leaves the reason of the longer one.
    paused_because = CASE
        WHEN $5::float8 > 0 AND clock_timestamp() + make_interval(secs => $5::float8) >= COALESCE(paused_until, 'epoch')
        THEN $6::text ELSE paused_because END
WHERE app_id = $1::int

-- name: lock_apple_breaker
-- Locks the breaker that all apps share and reads it with the clock.
SELECT g.failures, GREATEST(g.paused_until, 'epoch') AS paused_until, clock_timestamp() AS at FROM ledger.apple_breaker g FOR NO KEY UPDATE

-- name: write_apple_breaker
-- Records that $1 consecutive rounds of calls got no answer; no app calls Apple for $2 seconds (0: go on) because of
-- $3.
UPDATE ledger.apple_breaker
SET failures = $1::smallint,
    paused_until = GREATEST(paused_until, clock_timestamp() + make_interval(secs => $2::float8)),
    -- A shorter pause leaves the reason of the longer one.
    paused_because = CASE
        WHEN $2::float8 > 0 AND clock_timestamp() + make_interval(secs => $2::float8) >= COALESCE(paused_until, 'epoch')
        THEN $3::text ELSE paused_because END

-- name: pause_refused_calls
-- Settlement: stops the checks' calls of the Server API about app $1 in environment $2 for $3 seconds, because Apple refuses its key
-- ($4); not where the key was stored after the claim ($5), or is gone. A pause that lasts longer stays.
INSERT INTO ledger.call_budget AS b (app_id, environment, endpoint, tokens, refilled_at, paused_until, refused_because)
SELECT k.app_id, $2::text::ledger.environment, e.endpoint, 0, now(), now() + make_interval(secs => $3::float8), $4::text
FROM ledger.server_key k CROSS JOIN (VALUES ('history'), ('statuses')) AS e(endpoint)
WHERE k.app_id = $1::int AND k.stored_at <= $5::timestamptz
ON CONFLICT (app_id, environment, endpoint) DO UPDATE
SET paused_until = GREATEST(b.paused_until, EXCLUDED.paused_until), refused_because = EXCLUDED.refused_because
