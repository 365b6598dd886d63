-- What an operator sees: status and gauges.

-- name: status_consumption
-- Returns transactions whose consumption Apple has asked about without an answer since: for more than $1 hours, at most $2
-- days; the longest waiting first, at most $3.
SELECT a.bundle_id, n.environment::text AS environment, n.transaction_id, min(n.signed_at) AS asked_at
FROM ledger.notification n JOIN ledger.app a USING (app_id)
WHERE n.kind = 'CONSUMPTION_REQUEST'
  AND n.signed_at BETWEEN now() - make_interval(days => $2::int) AND now() - make_interval(hours => $1::int)
  AND n.transaction_id IS NOT NULL AND num_nonnulls(n.texts, n.claims) > 0
  AND NOT EXISTS (
        SELECT FROM ledger.support_call c
        WHERE c.app_id = n.app_id AND c.subject = n.transaction_id AND c.kind = 'consumption'
          AND c.environment = n.environment AND c.outcome IN ('done', 'withheld') AND c.answered_at >= n.signed_at)
GROUP BY a.bundle_id, n.environment, n.transaction_id
ORDER BY min(n.signed_at), a.bundle_id LIMIT $3::int

-- name: status
-- Returns the state of the schedule, per app and lane. Each count stops at $1, or earlier when there are many apps
-- (at_most), so that the cost does not depend on the size. Receipts in flight lie shortly ahead, where leases end.
-- lag_seconds is the wait of the first due receipt of a lane; for imported ones, which are not in order of time, that
-- of the one stored first.
WITH bound AS MATERIALIZED (
    SELECT GREATEST(100, LEAST($1::bigint, 10 * $1::bigint / GREATEST(1, count(*)))) AS rows FROM ledger.app
)
SELECT a.bundle_id, l.lane::text AS lane, stock.receipts, waiting.due, waiting.overdue, ahead.in_flight,
       LEAST(waiting.next_due_at, stored.first_at, ahead.next_due_at) AS next_due_at,
       EXTRACT(epoch FROM now() - LEAST(waiting.next_due_at, stored.first_at))::float8 AS lag_seconds, bound.rows AS at_most
FROM ledger.app a
CROSS JOIN bound
CROSS JOIN unnest(enum_range(NULL::ledger.lane)) l(lane)
CROSS JOIN LATERAL (
    SELECT count(*) AS receipts FROM (
        SELECT FROM ledger.poll_schedule s WHERE s.app_id = a.app_id AND s.lane = l.lane
        ORDER BY s.due_at LIMIT bound.rows) s) stock
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE s.leased_by IS NULL) AS due,
           count(*) FILTER (WHERE GREATEST(s.due_at, s.scheduled_for) <= now() - interval '1 minute') AS overdue,
           min(GREATEST(s.due_at, s.scheduled_for)) FILTER (WHERE s.leased_by IS NULL) AS next_due_at
    FROM (
        SELECT s.due_at, s.scheduled_for, s.leased_by FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= now()
        ORDER BY s.due_at LIMIT bound.rows) s) waiting
CROSS JOIN LATERAL (
    SELECT CASE l.lane WHEN 'import' THEN (
        SELECT s.scheduled_for FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = 'import' AND s.due_at <= now() AND s.leased_by IS NULL
        ORDER BY s.scheduled_for LIMIT 1) END AS first_at) stored
CROSS JOIN LATERAL (
    SELECT count(s.leased_by) AS in_flight,
           min(GREATEST(s.due_at, s.scheduled_for)) FILTER (WHERE s.leased_by IS NULL) AS next_due_at
    FROM (
        SELECT s.due_at, s.scheduled_for, s.leased_by FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at > now()
        ORDER BY s.due_at LIMIT bound.rows) s) ahead
WHERE stock.receipts > 0
ORDER BY a.bundle_id, l.lane

-- name: status_incidents
-- Returns incidents that run or ended within 24 hours, newest first.
SELECT a.bundle_id, i.kind, i.opened_at, i.closed_at, i.asked, i.refused, i.last_reason
FROM ledger.incident i JOIN ledger.app a USING (app_id)
WHERE i.closed_at IS NULL OR i.closed_at > now() - interval '24 hours'
ORDER BY i.incident_id DESC

-- name: status_totals
-- Returns the totals: receipts by verification, without erased ones, subscriptions, events, and the time of the newest verified answer. With
-- more than $1 receipts the numbers of receipts and subscriptions are the planner's estimates, and the time is exact to
-- a minute.
WITH size AS MATERIALIZED (
    SELECT c.relname, c.reltuples, c.reltuples > $1::bigint AS is_large
    FROM pg_class c WHERE c.oid IN ('ledger.receipt'::regclass, 'ledger.subscription'::regclass)
), receipts AS MATERIALIZED (
    SELECT size.stored::bigint AS receipts,
           (SELECT max(v.minute) FROM ledger.verified_minute v) AS last_checked_at,
           round(size.stored * (
               SELECT s.null_frac FROM pg_stats s
               WHERE s.schemaname = 'ledger' AND s.tablename = 'receipt' AND s.attname = 'verified_at'))::bigint AS unverified,
           round(size.stored * COALESCE((
               SELECT f.part FROM pg_stats s
               CROSS JOIN unnest(s.most_common_vals::text::text[], s.most_common_freqs) AS f(value, part)
               WHERE s.schemaname = 'ledger' AND s.tablename = 'receipt' AND s.attname = 'outcome'
                 AND f.value = 'rejected'), 0))::bigint AS rejected
    FROM (SELECT z.is_large, z.relname, z.reltuples * COALESCE((
              SELECT s.null_frac FROM pg_stats s
              WHERE s.schemaname = 'ledger' AND s.tablename = 'receipt' AND s.attname = 'erased_at'), 1) AS stored
          FROM size z) size
    WHERE size.relname = 'receipt' AND size.is_large
    UNION ALL
    SELECT count(*), max(GREATEST(r.verified_at, s.confirmed_at)), count(*) FILTER (WHERE r.verified_at IS NULL),
           count(*) FILTER (WHERE r.outcome = 'rejected')
    FROM ledger.receipt r LEFT JOIN ledger.poll_schedule s USING (receipt_id)
    WHERE NOT (SELECT size.is_large FROM size WHERE size.relname = 'receipt') AND r.erased_at IS NULL
    LIMIT 1
), subscriptions AS MATERIALIZED (
    SELECT size.reltuples::bigint AS subscriptions
    FROM size WHERE size.relname = 'subscription' AND size.is_large
    UNION ALL
    SELECT count(*) FROM ledger.subscription s
    WHERE s.version > 0 AND NOT (SELECT size.is_large FROM size WHERE size.relname = 'subscription')
    LIMIT 1
)
SELECT r.receipts, r.receipts - r.unverified AS verified, r.unverified, r.rejected, s.subscriptions, r.last_checked_at,
       (SELECT bool_or(size.is_large) FROM size) AS estimated,
       (SELECT count(*) FROM (SELECT FROM ledger.event_outbox LIMIT $1::bigint) o) AS unsequenced,
       (SELECT p.rounds > 0 FROM ledger.summary_progress p) AS is_summarised,
       f.feed_id, f.position, f.former_id, f.renewed_at, f.place LIKE 'cluster unknown,%' AS is_anywhere,
       (SELECT count(*) FROM ledger.worker WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '2 minutes') AS workers
FROM receipts r CROSS JOIN subscriptions s CROSS JOIN ledger.feed_here f

-- name: status_products
-- Returns products that customers bought once and that the catalog does not name, or names without a kind: at most $1.
-- Jumps through the index from product to product, so that the cost does not depend on the number of purchases.
WITH RECURSIVE sold AS (
    SELECT first.* FROM ledger.app a
    CROSS JOIN LATERAL (
        SELECT p.app_id, p.product_id FROM ledger.purchase p WHERE p.app_id = a.app_id
        ORDER BY p.product_id LIMIT 1) first
    UNION ALL
    SELECT following.* FROM sold
    CROSS JOIN LATERAL (
        SELECT p.app_id, p.product_id FROM ledger.purchase p
        WHERE p.app_id = sold.app_id AND p.product_id > sold.product_id
        ORDER BY p.product_id LIMIT 1) following
)
SELECT a.bundle_id, s.product_id, p.product_id IS NOT NULL AS is_named
FROM sold s JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.product p USING (app_id, product_id)
WHERE p.kind IS NULL
LIMIT $1::int

-- name: status_hidden_terms
-- For status: apps without a server key, of whose newest $1 periods together some look like payments of a yearly term, and how
-- many. verifyReceipt says nothing of terms.
SELECT a.bundle_id, count(*) AS periods
FROM (SELECT * FROM ledger.period ORDER BY period_id DESC LIMIT $1::int) p
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id)
JOIN ledger.product d ON d.app_id = s.app_id AND d.product_id = p.product_id
WHERE ledger.looks_monthly(d.period, p.purchased_at, p.expires_at) AND p.sale IS NULL AND NOT p.is_trial AND NOT p.is_intro
  AND num_nonnulls(p.promotional_offer_id, p.offer_code_ref_name) = 0 AND NOT ledger.is_shared(p.ownership)
  AND NOT EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = a.app_id)
GROUP BY a.bundle_id
ORDER BY a.bundle_id

-- name: status_unasked
-- Returns the apps with subscriptions and purchases that Apple is not asked about, and how many; whether each has a server
-- key, so that a worker takes them up.
SELECT a.bundle_id, count(*) AS subjects, k.app_id IS NOT NULL AS has_key
FROM ledger.unasked u JOIN ledger.app a USING (app_id) LEFT JOIN ledger.server_key k USING (app_id)
WHERE a.removed_at IS NULL
GROUP BY a.bundle_id, k.app_id ORDER BY a.bundle_id

-- name: status_provisional
-- Counts receipts that wait for Apple and have provisional access, up to $1; also the end of the last such access.
SELECT count(*) AS receipts,
       CASE WHEN count(*) < $1::int THEN max(w.until) ELSE (SELECT max(p.until) FROM ledger.provisional p) END AS until
FROM (
    SELECT word.until
    FROM ledger.app a
    JOIN ledger.poll_schedule s ON s.app_id = a.app_id AND s.lane IN ('new', 'import')
    CROSS JOIN LATERAL (
        SELECT max(p.until) AS until FROM ledger.provisional p WHERE p.receipt_id = s.receipt_id) word
    WHERE word.until > now()
    LIMIT $1::int) w

-- name: status_refused_bundles
-- For status: the bundle ids that refused receipts named, at most $1, the newest first; is_only says that the app has no
-- other receipt.
SELECT a.bundle_id, b.bundle_id AS named, b.receipts, b.last_at,
       NOT EXISTS (SELECT FROM ledger.receipt r WHERE r.app_id = b.app_id AND r.erased_at IS NULL) AS is_only
FROM ledger.refused_bundle b JOIN ledger.app a USING (app_id)
WHERE a.removed_at IS NULL
ORDER BY b.last_at DESC, a.bundle_id, b.bundle_id LIMIT $1::int

-- name: gauge_lanes
-- For metrics: counts receipts due now per app and lane, up to $1, and returns how many seconds the first has waited.
-- An imported receipt has a place in a queue and no due time: among those the one stored first counts. A column of a number
-- has the name of its metric, the others those of its labels.
SELECT a.bundle_id AS app, l.lane::text AS lane, waiting.receipts::float8 AS perennial_due_receipts,
       COALESCE(EXTRACT(epoch FROM now() - first.due_at), 0)::float8 AS perennial_due_lag_seconds
FROM ledger.app a
CROSS JOIN unnest(enum_range(NULL::ledger.lane)) l(lane)
CROSS JOIN LATERAL (
    SELECT count(*) AS receipts, min(s.due_at) AS due_at
    FROM (
        SELECT s.due_at FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= now()
        ORDER BY s.due_at LIMIT $1::int) s) waiting
CROSS JOIN LATERAL (
    SELECT CASE l.lane WHEN 'import' THEN (
        SELECT s.scheduled_for FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = 'import' AND s.due_at <= now()
        ORDER BY s.scheduled_for LIMIT 1) ELSE waiting.due_at END AS due_at) first
ORDER BY a.bundle_id, l.lane

-- name: gauge_apps
-- For metrics: each app's present calls a second (0: unlimited) and calls left, incidents, and the claims that are not read.
SELECT a.bundle_id AS app,
       ledger.calls_a_second(b.rate, b.slowed_to, b.slowed_at, now())::float8 AS perennial_budget_calls_per_second,
       b.tokens::float8 AS perennial_budget_tokens, b.failures::float8 AS perennial_breaker_failures,
       (SELECT count(*) FROM (SELECT FROM ledger.incident i WHERE i.app_id = a.app_id AND i.closed_at IS NULL LIMIT 1) i
       )::float8 AS perennial_incident,
       (SELECT count(*) FROM ledger.unread_claim u WHERE u.app_id = a.app_id)::float8 AS perennial_unread_claims
FROM ledger.app a JOIN ledger.app_budget b USING (app_id)
ORDER BY a.bundle_id

-- name: gauge_paused
-- For metrics: whether the scheduled checks of each app wait, in production and in the sandbox, and whether Apple accepts only its
-- previous secret there.
SELECT a.bundle_id AS app, e.environment::text AS environment,
       (GREATEST(b.paused_until, g.paused_until) > now()
        OR ledger.secret_pause(a.app_id, e.environment = 'Sandbox') IS NOT NULL)::int::float8 AS perennial_paused,
       (t.previous_since IS NOT NULL)::int::float8 AS perennial_previous_secret
FROM ledger.app a JOIN ledger.app_budget b USING (app_id) CROSS JOIN ledger.apple_breaker g
CROSS JOIN unnest(enum_range(NULL::ledger.environment)) e(environment)
LEFT JOIN ledger.secret_trial t ON t.app_id = a.app_id AND t.environment = e.environment
ORDER BY a.bundle_id, e.environment

-- name: gauge_whole
-- For metrics: returns the feed's lag behind committed events (counts at most $1 of them), the number of live workers,
-- and the number of consecutive rounds of calls, for any app, without an answer.
SELECT (SELECT position FROM ledger.feed)::float8 AS perennial_feed_position,
       (SELECT count(*) FROM (SELECT FROM ledger.event_outbox LIMIT $1::int) o)::float8 AS perennial_feed_unsequenced_events,
       COALESCE((
           SELECT EXTRACT(epoch FROM now() - e.recorded_at)
           FROM (SELECT event_id FROM ledger.event_outbox ORDER BY event_id LIMIT 1) o JOIN ledger.event e USING (event_id)
       ), 0)::float8 AS perennial_feed_lag_seconds,
       (SELECT count(*) FROM ledger.worker
        WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '2 minutes')::float8 AS perennial_workers,
       (SELECT failures FROM ledger.apple_breaker)::float8 AS perennial_appstore_breaker_failures

-- name: gauge_business
-- For metrics: each app's and environment's figures at the end of the last whole UTC day, from the sums of the summaries, and
-- how many subscriptions are in grace and in billing retry now, from the timelines that say so. `mrr` has a currency.
WITH reported AS (
    SELECT d.app_id, d.environment, d.currency, sum(d.active) AS active, sum(d.paying) AS paying, sum(d.trial) AS trial,
           sum(d.monthly_milliunits) AS monthly
    FROM ledger.summary_day d
    WHERE d.day < (now() AT TIME ZONE 'UTC')::date
    GROUP BY d.app_id, d.environment, d.currency
), unpaid AS MATERIALIZED (
    SELECT s.app_id, s.environment, c.state::text AS state, count(*) AS subscriptions
    FROM ledger.subscription_span c JOIN ledger.subscription s USING (subscription_id)
    WHERE upper_inf(c.known) AND c.state IN ('grace_period', 'billing_retry')
      AND COALESCE(upper(c.valid), 'infinity') > now() AND lower(c.valid) <= now()
    GROUP BY s.app_id, s.environment, c.state
), figure AS (
    SELECT app_id, environment, 'entitled' AS figure, '' AS currency, sum(active) AS value FROM reported GROUP BY 1, 2
    UNION ALL SELECT app_id, environment, 'paying', '', sum(paying) FROM reported GROUP BY 1, 2
    UNION ALL SELECT app_id, environment, 'trial', '', sum(trial) FROM reported GROUP BY 1, 2
    UNION ALL SELECT app_id, environment, 'mrr', currency, monthly / 1000.0 FROM reported WHERE currency <> ''
    UNION ALL
    SELECT r.app_id, r.environment, w.state, '', COALESCE(u.subscriptions, 0)
    FROM (SELECT app_id, environment FROM reported UNION SELECT app_id, environment FROM unpaid) r
    CROSS JOIN (VALUES ('grace_period'), ('billing_retry')) w(state)
    LEFT JOIN unpaid u ON u.app_id = r.app_id AND u.environment = r.environment AND u.state = w.state
)
SELECT a.bundle_id AS app, f.environment::text AS environment, f.currency, f.value::float8 AS value,
       'perennial_' || f.figure || CASE f.figure WHEN 'mrr' THEN '' ELSE '_subscriptions' END AS metric
FROM figure f JOIN ledger.app a USING (app_id)
ORDER BY a.bundle_id, f.environment, f.figure, f.currency
