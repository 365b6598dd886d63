-- Current entitlements: the read model of lookups.

-- name: current_entitlements
-- Lookup: returns what is stored of the present entitlements of customers ($2) of apps ($1), and the clocks of their
-- sources: a row per source, at least one; place is the customer's number, from 1. No row: nothing current is stored. now is
-- the instant of the lookup. PostgreSQL keeps the plan, because the sub-selects hide the lengths of the arrays from it.
SELECT n.place, GREATEST(now(), v.computed_at) AS now, v.sent AS spans, k.subscription_id, k.purchase_id, k.as_of,
       k.checked_at
FROM unnest((SELECT $1::text[]), (SELECT $2::text[])) WITH ORDINALITY AS n(bundle_id, name, place)
JOIN ledger.app a USING (bundle_id)
JOIN LATERAL (
    SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id
    FROM ledger.customer c WHERE c.app_id = a.app_id AND c.name = n.name OFFSET 0) c ON true
JOIN LATERAL (
    SELECT v.* FROM ledger.current_entitlements v
    WHERE v.customer_id = c.customer_id AND v.catalog_changed_at = a.catalog_changed_at
      AND v.computed_at <= now() + interval '1 hour' OFFSET 0) v ON true
LEFT JOIN LATERAL (
    SELECT s.subscription_id, NULL::bigint AS purchase_id, ledger.as_of(s, poller) AS as_of,
           ledger.checked_at(s, poller) AS checked_at
    FROM ledger.subscription s LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
    WHERE s.subscription_id = ANY(v.subscriptions)
    UNION ALL
    SELECT NULL, p.purchase_id, ledger.as_of(p, poller), ledger.checked_at(p, poller)
    FROM ledger.purchase p LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
    WHERE p.purchase_id = ANY(v.purchases)) k
    ON true

-- name: entitlements
-- Lookup: returns the entitlements of customers ($2) of apps ($1) at $3 as known at $4 (nulls: now), at least one row per
-- customer. place is the customer's number, from 1; no entitlement: the customer has none, or is unknown.
WITH asked AS MATERIALIZED (
    SELECT n.place, c.customer_id
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS n(bundle_id, name, place)
    LEFT JOIN ledger.app a USING (bundle_id)
    LEFT JOIN LATERAL (
        SELECT c.customer_id FROM ledger.customer c WHERE c.app_id = a.app_id AND c.name = n.name OFFSET 0) c ON true
)
SELECT a.place, now() AS now, e.entitlement, e.granted, e.until, e.product_id, e.state, e.reason,
       e.environment::text AS environment, e.basis, e.as_of, e.checked_at, e.expires_at, e.ended_at
FROM asked a
LEFT JOIN ledger.entitlements(
    ARRAY(SELECT DISTINCT customer_id FROM asked WHERE customer_id IS NOT NULL), $3::timestamptz, $4::timestamptz) e
    USING (customer_id)
ORDER BY a.place, e.entitlement COLLATE "C"

-- name: lock_affected_customers
-- Locks the customers ($1), and those with a provisional entitlement of receipts ($2), whose entitlements a transaction
-- changes; returns them, whether their names mean another customer by now, and whether such an entitlement still holds. So
-- two changes to one customer are computed one after the other.
SELECT c.customer_id, c.merged_into IS NOT NULL AS is_merged,
       cardinality($2::bigint[]) > 0 AND EXISTS (
           SELECT FROM ledger.provisional p
           WHERE p.customer_id = c.customer_id AND p.receipt_id = ANY($2::bigint[]) AND p.until > now()) AS is_provisional
FROM ledger.customer c
WHERE c.customer_id IN (
    SELECT unnest($1::bigint[])
    UNION
    SELECT p.customer_id FROM ledger.provisional p WHERE p.receipt_id = ANY($2::bigint[]))
ORDER BY c.customer_id FOR NO KEY UPDATE

-- name: store_entitlements
-- Stores what customers ($1) may use from now on. It runs after the changes of its transaction, and the customers are
-- locked.
INSERT INTO ledger.current_entitlements
    (customer_id, app_id, catalog_changed_at, computed_at, spans, subscriptions, purchases)
SELECT e.customer_id, e.app_id, e.catalog_changed_at, e.computed_at, e.spans, e.subscriptions, e.purchases
FROM ledger.compute_entitlements($1::bigint[]) e
ORDER BY e.customer_id
ON CONFLICT (customer_id) DO UPDATE
SET catalog_changed_at = EXCLUDED.catalog_changed_at, computed_at = EXCLUDED.computed_at, spans = EXCLUDED.spans,
    subscriptions = EXCLUDED.subscriptions, purchases = EXCLUDED.purchases

-- name: outdate_entitlements
-- Outdates what is stored about customers ($1): lookups compute it until a worker renews it, or stores it for the first
-- time.
INSERT INTO ledger.current_entitlements AS v
    (customer_id, app_id, catalog_changed_at, computed_at, spans, subscriptions, purchases)
SELECT c.customer_id, c.app_id, '-infinity', now(), '{}', '{}', '{}'
FROM ledger.customer c WHERE c.customer_id = ANY($1::bigint[])
ORDER BY c.customer_id
ON CONFLICT (customer_id) DO UPDATE SET catalog_changed_at = EXCLUDED.catalog_changed_at

-- name: lock_outdated_entitlements
-- Worker: locks and returns at most $1 customers whose stored entitlements are outdated; skips those that another
-- transaction holds.
SELECT c.customer_id FROM ledger.customer c
WHERE c.customer_id IN (
    SELECT v.customer_id
    FROM ledger.app a
    CROSS JOIN LATERAL (
        SELECT v.customer_id FROM ledger.current_entitlements v
        WHERE v.app_id = a.app_id AND v.catalog_changed_at < a.catalog_changed_at
        ORDER BY v.catalog_changed_at LIMIT $1::int) v
    LIMIT $1::int)
ORDER BY c.customer_id FOR NO KEY UPDATE SKIP LOCKED

-- name: standby_place
-- Returns which ledger the responding server has, by its feed; when a primary started, in microseconds, null for a standby;
-- and how many seconds it is behind, 0 for a primary. A standby that is connected to its primary and has replayed all it
-- received is not behind. Otherwise the last replayed transaction counts, null when there was none.
SELECT (SELECT f.feed_id FROM ledger.feed_here f)::text AS feed,
       CASE WHEN NOT pg_is_in_recovery() THEN (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint END
           AS started_at,
       CASE
    WHEN NOT pg_is_in_recovery() THEN 0
    WHEN EXISTS (SELECT FROM pg_stat_wal_receiver)
        AND pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn() THEN 0
    ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())
END::float8 AS seconds
