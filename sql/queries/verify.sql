-- Verification: turns, keys of a slice, terms and repairs, and the invariants of subscriptions. The other invariants are in
-- invariants.sql and changes.sql.

-- name: read_verify_terms
-- Verify: returns lease and speed-up of the worker with the newest heartbeat; no row if no worker reported them.
SELECT w.lease_seconds, w.speedup FROM ledger.worker w
WHERE w.lease_seconds IS NOT NULL AND w.speedup IS NOT NULL
ORDER BY w.stopped_at IS NOT NULL, w.heartbeat_at DESC, w.worker_id DESC LIMIT 1

-- name: verify_limit
-- Verify: limits each statement of this transaction to $1 milliseconds, disables JIT, and makes plans for the actual
-- slice: a generic plan would read whole tables.
SELECT set_config('statement_timeout', $1::int::text, true) AS milliseconds, set_config('jit', 'off', true) AS jit,
       set_config('plan_cache_mode', 'force_custom_plan', true) AS plans

-- name: take_verify_turn
-- Verify: gives worker $2 the turn $1, if it ended and last began $3 seconds ago or more, or its worker made no
-- progress for $4 seconds.
UPDATE ledger.verify_turn t SET worker_id = $2::int, begun_at = now(), moved_at = now(), ended_at = NULL
WHERE t.name = $1::text
  AND CASE WHEN t.ended_at IS NOT NULL THEN t.begun_at <= now() - make_interval(secs => $3::float8)
           ELSE t.moved_at <= now() - make_interval(secs => $4::float8) END
RETURNING t.name

-- name: verify_next_subscriptions
-- Verify: returns the end of the next slice of at most $2 subscriptions after $1; null when there are none.
SELECT max(n.subscription_id) AS until
FROM (SELECT subscription_id FROM ledger.subscription WHERE subscription_id > $1::bigint ORDER BY subscription_id LIMIT $2::int) n

-- name: verify_next_purchases
-- Verify: returns the end of the next slice of at most $2 one-time purchases after $1; null when there are none.
SELECT max(n.purchase_id) AS until
FROM (SELECT purchase_id FROM ledger.purchase WHERE purchase_id > $1::bigint ORDER BY purchase_id LIMIT $2::int) n

-- name: verify_next_receipts
-- Verify: returns the end of the next slice of at most $2 receipts after $1; null when there are none.
SELECT max(n.receipt_id) AS until
FROM (SELECT receipt_id FROM ledger.receipt WHERE receipt_id > $1::bigint ORDER BY receipt_id LIMIT $2::int) n

-- name: verify_next_ownerships
-- Verify: returns the end of the next slice of at most $2 ownerships after $1; null when there are none.
SELECT max(n.ownership_id) AS until
FROM (SELECT ownership_id FROM ledger.ownership WHERE ownership_id > $1::bigint ORDER BY ownership_id LIMIT $2::int) n

-- name: verify_next_customers
-- Verify: returns the end of the next slice of at most $2 customers after $1; null when there are none.
SELECT max(n.customer_id) AS until
FROM (SELECT customer_id FROM ledger.customer WHERE customer_id > $1::bigint ORDER BY customer_id LIMIT $2::int) n

-- name: verify_next_events
-- Verify: returns the end of the next slice of at most $2 events after $1; null when there are none.
SELECT max(n.event_id) AS until
FROM (SELECT event_id FROM ledger.event WHERE event_id > $1::bigint ORDER BY event_id LIMIT $2::int) n

-- name: verify_next_positions
-- Verify: returns the end of the next slice of at most $2 positions of the feed after $1; null when there are none.
SELECT CASE WHEN newest.position > $1::bigint THEN LEAST($1::bigint + $2::int, newest.position) END AS until
FROM (SELECT GREATEST(f.position, (SELECT max(p.position) FROM ledger.event_feed p)) AS position FROM ledger.feed f) newest

-- name: verify_next_webhooks
-- Verify: returns the end of the next slice of at most $2 webhooks after $1; null when there are none.
SELECT max(n.webhook_id)::bigint AS until
FROM (SELECT webhook_id FROM ledger.webhook WHERE webhook_id > $1::bigint ORDER BY webhook_id LIMIT $2::int) n

-- name: verify_next_apps
-- Verify: returns the end of the next slice of at most $2 apps after $1; null when there are none.
SELECT max(n.app_id)::bigint AS until
FROM (SELECT app_id FROM ledger.app WHERE app_id > $1::bigint ORDER BY app_id LIMIT $2::int) n

-- name: move_verify_turn
-- Verify: reports that worker $2 continues the turn $1, or with $3 that it has finished; no row when another worker has
-- the turn.
UPDATE ledger.verify_turn t SET moved_at = now(), ended_at = CASE WHEN $3::boolean THEN now() END
WHERE t.name = $1::text AND t.worker_id = $2::int AND t.ended_at IS NULL
RETURNING t.name

-- name: write_invariants
-- Verify: stores the result of a full check, by invariant ($1): violations found ($2) and those of them repaired ($3).
INSERT INTO ledger.invariant AS i (name, violations, repaired, checked_at)
SELECT n.name, n.violations, n.repaired, now() FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS n(name, violations, repaired)
ORDER BY n.name
ON CONFLICT (name) DO UPDATE
SET violations = EXCLUDED.violations, repaired = EXCLUDED.repaired, checked_at = EXCLUDED.checked_at

-- name: read_invariants
-- Status: returns the result of the last check of each invariant.
SELECT i.name, i.violations, i.repaired, i.checked_at FROM ledger.invariant i ORDER BY i.name

-- name: restore_link
-- Verify: notes that receipt $1 holds what it polls of subscription $2 or purchase $3; its next answer shows whether it does.
WITH subscribed AS (
    INSERT INTO ledger.receipt_subscription (receipt_id, subscription_id)
    SELECT s.polled_by, s.subscription_id FROM ledger.subscription s
    WHERE s.subscription_id = $2::bigint AND s.polled_by = $1::bigint
    ON CONFLICT DO NOTHING
)
INSERT INTO ledger.receipt_purchase (receipt_id, purchase_id)
SELECT p.polled_by, p.purchase_id FROM ledger.purchase p WHERE p.purchase_id = $3::bigint AND p.polled_by = $1::bigint
ON CONFLICT DO NOTHING

-- name: restore_follow_ups
-- Verify: has receipt $1 asked about now, with follow-ups, if a notification about what it polls waits for an answer.
INSERT INTO ledger.poll_schedule AS s (receipt_id, app_id, lane, due_at, scheduled_for, follow_ups, is_sandbox)
SELECT r.receipt_id, r.app_id, 'retry', now(), now(), 4, r.environment IS NOT DISTINCT FROM 'Sandbox'
FROM ledger.receipt r
WHERE r.receipt_id = $1::bigint AND EXISTS (
    SELECT FROM ledger.notification n
    WHERE n.effect = 'asked' AND (n.app_id, n.environment, n.original_transaction_id) IN (
        SELECT o.app_id, o.environment, o.original_transaction_id FROM ledger.subscription o WHERE o.polled_by = r.receipt_id
        UNION ALL
        SELECT o.app_id, o.environment, o.original_transaction_id FROM ledger.purchase o WHERE o.polled_by = r.receipt_id))
ON CONFLICT (receipt_id) DO UPDATE
SET follow_ups = 4, fingerprint = NULL,
    due_at = CASE WHEN s.leased_by IS NULL THEN LEAST(s.due_at, now()) ELSE s.due_at END,
    scheduled_for = CASE WHEN s.leased_by IS NULL THEN LEAST(s.scheduled_for, now()) ELSE s.scheduled_for END,
    want_at = CASE WHEN s.leased_by IS NOT NULL THEN LEAST(s.want_at, now()) ELSE s.want_at END
WHERE s.follow_ups = 0

-- name: verify_subscriptions
-- Verify: returns the stored subscriptions after $1 up to $2 and how they are polled. sleeps: the polling receipt waits
-- for its time and Apple responds. candidate: a receipt that could poll where none does.
SELECT s.subscription_id, s.app_id, a.bundle_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by,
       s.version, ledger.as_of(s, p) AS as_of, ledger.checked_at(s, p) AS checked_at, s.recorded_at,
       ledger.next_check_at(s, p) AS next_check_at, s.renewal, ledger.renewal_as_of(s, p) AS renewal_as_of,
       s.renewal_path, s.suspected, s.leeway_ms, s.group_id, s.will_renew, s.next_payment, s.sale, s.renews_to_product_id, s.flags, s.expires_at,
       s.head_starts_at,
       s.started_at, s.periods, s.app_account_token, s.access_ends_at, s.renewal_expected, now() AS now,
       COALESCE(p.leased_by IS NULL AND NOT p.backs_off AND p.due_at > now()
           AND p.lane <> 'quarantine' AND GREATEST(b.paused_until, g.paused_until) <= now() AND GREATEST(b.failures, g.failures) = 0
           AND ledger.calls_a_second(b.rate, b.slowed_to, b.slowed_at, now()) = b.rate, false) AS sleeps,
       CASE WHEN s.polled_by IS NULL THEN (
           SELECT c.receipt_id FROM ledger.receipt_subscription l JOIN ledger.receipt c USING (receipt_id)
           LEFT JOIN ledger.poll_schedule q USING (receipt_id)
           WHERE l.subscription_id = s.subscription_id AND ledger.could_poll(c, q)
           ORDER BY c.receipt_created_at DESC NULLS LAST, c.receipt_id DESC LIMIT 1) END AS candidate
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
JOIN ledger.app_budget b USING (app_id)
CROSS JOIN ledger.apple_breaker g
LEFT JOIN ledger.receipt r ON r.receipt_id = s.polled_by
LEFT JOIN ledger.poll_schedule p ON p.receipt_id = s.polled_by
WHERE s.subscription_id > $1::bigint AND s.subscription_id <= $2::bigint AND s.version > 0
ORDER BY s.subscription_id

-- name: count_awaiting_release
-- Verify: returns the products of which workers go through what a catalog released, and how many paid orders, at most $1 of
-- a product, have no delivery until they come to them.
SELECT a.bundle_id, r.product_id, n.orders
FROM ledger.delivery_release r
JOIN ledger.app a USING (app_id)
CROSS JOIN LATERAL (
    SELECT count(*) AS orders
    FROM (SELECT FROM ledger.purchase_order o
          WHERE o.state = 'paid' AND o.app_id = r.app_id AND o.product_id = r.product_id
            AND NOT EXISTS (SELECT FROM ledger.delivery d WHERE d.order_id = o.order_id)
            AND (o.purchase_id > r.after_purchase OR o.subscription_id > r.after_subscription)
          LIMIT $1::int) o) n
ORDER BY a.bundle_id, r.product_id COLLATE "C"
