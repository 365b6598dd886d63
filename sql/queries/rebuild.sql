-- Rebuild: what replays the kept answers.

-- name: count_rebuildable
-- Rebuild: counts the subscriptions and purchases of app $1 and of the receipts of customer $2, and the customers whose
-- entitlements are compared (nulls: all).
SELECT (SELECT count(*) FROM ledger.subscription s JOIN ledger.app a USING (app_id)
        WHERE s.version > 0 AND ($1::text IS NULL OR a.bundle_id = $1::text) AND ($2::text IS NULL OR EXISTS (
            SELECT FROM ledger.receipt_subscription l JOIN ledger.upload u USING (receipt_id)
            JOIN ledger.customer c USING (customer_id)
            WHERE l.subscription_id = s.subscription_id AND c.name = $2::text)))
     + (SELECT count(*) FROM ledger.purchase p JOIN ledger.app a USING (app_id)
        WHERE p.version > 0 AND ($1::text IS NULL OR a.bundle_id = $1::text) AND ($2::text IS NULL OR EXISTS (
            SELECT FROM ledger.receipt_purchase l JOIN ledger.upload u USING (receipt_id)
            JOIN ledger.customer c USING (customer_id)
            WHERE l.purchase_id = p.purchase_id AND c.name = $2::text)))
     + (SELECT count(*) FROM ledger.customer n LEFT JOIN ledger.current_entitlements v USING (customer_id)
        WHERE (v.customer_id IS NOT NULL OR n.merged_into IS NULL)
          AND ($1::text IS NULL OR n.app_id = (SELECT a.app_id FROM ledger.app a WHERE a.bundle_id = $1::text))
          AND ($2::text IS NULL OR n.customer_id IN (
            SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c WHERE c.name = $2::text))) AS things

-- name: find_subscriptions_after
-- Rebuild: returns the next subscriptions after $1, at most $2, of app $3 and of the receipts of customer $4 (nulls:
-- all).
SELECT n.subscription_id FROM ledger.subscription n JOIN ledger.app b USING (app_id)
WHERE n.subscription_id > $1::bigint AND n.version > 0 AND ($3::text IS NULL OR b.bundle_id = $3::text)
  AND ($4::text IS NULL OR EXISTS (
        SELECT FROM ledger.receipt_subscription l JOIN ledger.upload u USING (receipt_id)
        JOIN ledger.customer c USING (customer_id)
        WHERE l.subscription_id = n.subscription_id AND c.name = $4::text))
ORDER BY n.subscription_id LIMIT $2::int

-- name: lock_rebuilt_subscriptions
-- Rebuild: locks and reads subscriptions ($1) in natural-key order.
SELECT s.subscription_id, s.app_id, a.bundle_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by,
       s.version, ledger.as_of(s, poller) AS as_of, ledger.checked_at(s, poller) AS checked_at, s.recorded_at,
       ledger.next_check_at(s, poller) AS next_check_at, s.renewal, ledger.renewal_as_of(s, poller) AS renewal_as_of,
       s.renewal_path, s.suspected, s.leeway_ms, s.group_id, s.will_renew, s.next_payment, s.sale, s.renews_to_product_id, s.flags, s.expires_at,
       s.head_starts_at,
       s.started_at, s.periods, s.app_account_token, s.access_ends_at, s.renewal_expected
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
WHERE s.subscription_id = ANY($1::bigint[])
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR NO KEY UPDATE OF s

-- name: delete_aliases
-- Rebuild: deletes the transaction ids of periods ($1), which are then written anew.
DELETE FROM ledger.transaction_alias WHERE period_id = ANY($1::bigint[])

-- name: find_purchases_after
-- Rebuild: returns the next one-time purchases after $1, at most $2, of app $3 and of the receipts of customer $4
-- (nulls: all).
SELECT n.purchase_id FROM ledger.purchase n JOIN ledger.app b USING (app_id)
WHERE n.purchase_id > $1::bigint AND n.version > 0 AND ($3::text IS NULL OR b.bundle_id = $3::text)
  AND ($4::text IS NULL OR EXISTS (
        SELECT FROM ledger.receipt_purchase l JOIN ledger.upload u USING (receipt_id)
        JOIN ledger.customer c USING (customer_id)
        WHERE l.purchase_id = n.purchase_id AND c.name = $4::text))
ORDER BY n.purchase_id LIMIT $2::int

-- name: lock_rebuilt_purchases
-- Rebuild: locks and reads one-time purchases ($1) in natural-key order.
SELECT p.purchase_id, p.app_id, a.bundle_id, p.environment::text AS environment, p.original_transaction_id, p.product_id,
       p.version, p.facts, p.transaction_ids, d.kind::text AS kind, ledger.as_of(p, poller) AS as_of, p.recorded_at,
       ledger.checked_at(p, poller) AS checked_at, p.transaction_id, p.quantity,
       p.purchased_at, p.revoked_at, p.app_account_token, p.polled_by,
       ledger.next_check_at(p, poller) AS next_check_at
FROM ledger.purchase p
LEFT JOIN ledger.product d USING (app_id, product_id)
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
WHERE p.purchase_id = ANY($1::bigint[])
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR NO KEY UPDATE OF p

-- name: store_checked_at
-- Rebuild: restores the times ($2) of the last verified answers of purchases ($1), which were corrected, not checked.
UPDATE ledger.purchase p SET checked_at = n.checked_at
FROM unnest($1::bigint[], $2::timestamptz[]) AS n(purchase_id, checked_at) WHERE p.purchase_id = n.purchase_id

-- name: find_customers_after
-- Rebuild: returns the next customers after $1, at most $2, of app $3 and with the name $4 (nulls: all); merged names only
-- where something is stored of them.
SELECT n.customer_id FROM ledger.customer n LEFT JOIN ledger.current_entitlements v USING (customer_id)
WHERE n.customer_id > $1::bigint AND (v.customer_id IS NOT NULL OR n.merged_into IS NULL)
  AND ($3::text IS NULL OR n.app_id = (SELECT a.app_id FROM ledger.app a WHERE a.bundle_id = $3::text))
  AND ($4::text IS NULL OR n.customer_id IN (
        SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c WHERE c.name = $4::text))
ORDER BY n.customer_id LIMIT $2::int

-- name: compare_entitlements
-- Rebuild: returns where something else is stored about customers ($1) than their sources give from now on, or nothing.
SELECT d.customer_id, a.bundle_id, c.name, d.entitlement, d.stored, d.computed
FROM ledger.entitlement_differences($1::bigint[]) d
JOIN ledger.customer c USING (customer_id)
JOIN ledger.app a USING (app_id)
ORDER BY d.customer_id, d.entitlement COLLATE "C"

-- name: insert_corrections
-- Rebuild: records corrections; the parameters $1 to $7 are the columns named below.
INSERT INTO ledger.correction (subscription_id, purchase_id, version, fact, stored, rebuilt, recorded_at)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])

-- name: read_links
-- Rebuild: returns the receipts that contain subscriptions ($1) and purchases ($2), Apple's clock at the first event of
-- each, and at the first answer that was pruned because others say the same.
SELECT l.receipt_id, l.subscription_id, NULL::bigint AS purchase_id,
       (SELECT min(e.as_of) FROM ledger.event e WHERE e.subscription_id = l.subscription_id) AS first_as_of,
       g.first_as_of AS pruned_as_of
FROM ledger.receipt_subscription l LEFT JOIN ledger.pruned_receipt g USING (receipt_id)
WHERE l.subscription_id = ANY($1::bigint[])
UNION ALL
SELECT l.receipt_id, NULL, l.purchase_id,
       (SELECT min(e.as_of) FROM ledger.event e WHERE e.purchase_id = l.purchase_id), g.first_as_of
FROM ledger.receipt_purchase l LEFT JOIN ledger.pruned_receipt g USING (receipt_id)
WHERE l.purchase_id = ANY($2::bigint[])

-- name: read_observations
-- Rebuild: returns Apple's answers about receipts ($1), after the observation $2, at most $3; the newest observation of
-- a receipt ends with the newest equal answer.
SELECT o.observation_id, o.receipt_id, a.bundle_id, o.outcome::text AS outcome, o.reason, o.environment::text AS environment,
       o.first_as_of, o.body,
       CASE WHEN r.observation_id = o.observation_id THEN GREATEST(o.last_as_of, s.confirmed_as_of)
            ELSE o.last_as_of END AS last_as_of
FROM ledger.observation o
JOIN ledger.app a USING (app_id)
JOIN ledger.receipt r USING (receipt_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id)
WHERE o.receipt_id = ANY($1::bigint[]) AND o.observation_id > $2::bigint AND o.outcome IN ('verified', 'none')
ORDER BY o.observation_id LIMIT $3::int
