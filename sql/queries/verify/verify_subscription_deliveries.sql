-- Verify: returns subscriptions after $1 up to $2 that need a turn of delivery that is not stored, unless a worker goes
-- through what a catalog released of the product, those with a delivery in no state or in two,
-- and those with a turn whose units or customer differ from what a settlement writes.
WITH seen AS MATERIALIZED (
    SELECT COALESCE(array_agg(i.subscription_id), '{}') AS ids FROM ledger.subscription i
    WHERE i.subscription_id > $1::bigint AND i.subscription_id <= $2::bigint AND i.version > 0
)
SELECT (t.thing).subscription_id AS key, a.bundle_id, (t.thing).environment::text AS environment,
       (t.thing).original_transaction_id, NULL AS product_id, NULL::bigint AS receipt_id,
       format('turn %s (%s) of its delivery is not stored', t.turn, t.reason) AS detail
FROM seen n
CROSS JOIN LATERAL ledger.next_turns('{}', n.ids) t
JOIN ledger.app a ON a.app_id = (t.thing).app_id
WHERE NOT EXISTS (
    SELECT FROM ledger.delivery_release r
    WHERE r.app_id = (t.thing).app_id AND r.product_id = (t.thing).product_id)
UNION ALL
SELECT i.subscription_id, a.bundle_id, i.environment::text, i.original_transaction_id, NULL, NULL,
       format('delivery %s is %s', d.delivery_id, d.doubt)
FROM seen n CROSS JOIN LATERAL ledger.deliveries_in_doubt('{}', n.ids) d
JOIN ledger.subscription i USING (subscription_id)
JOIN ledger.app a ON a.app_id = i.app_id
UNION ALL
SELECT i.subscription_id, a.bundle_id, i.environment::text, i.original_transaction_id, NULL, NULL,
       format('delivery %s is of %s than the turn before', d.delivery_id,
              CASE WHEN d.units IS NOT DISTINCT FROM b.units OR d.reason = 'refund' AND d.units < b.units
                   THEN 'another customer' ELSE 'other units' END)
FROM seen n JOIN ledger.delivery d ON d.subscription_id = ANY(n.ids) AND d.turn > 1
JOIN ledger.delivery b ON b.subscription_id = d.subscription_id AND b.period_id = d.period_id AND b.turn = d.turn - 1
JOIN ledger.subscription i ON i.subscription_id = d.subscription_id
JOIN ledger.app a ON a.app_id = i.app_id
-- What is taken back was given to the same customer; a part of a refund may be less.
WHERE d.turn % 2 = 0 AND d.customer_id <> b.customer_id OR d.units > b.units
   OR d.units < b.units AND d.reason <> 'refund'
UNION ALL
SELECT i.subscription_id, a.bundle_id, i.environment::text, i.original_transaction_id, NULL, NULL,
       format('delivery %s is of a customer who never owned it', d.delivery_id)
FROM seen n JOIN ledger.delivery d ON d.subscription_id = ANY(n.ids) AND d.turn = 1
JOIN ledger.subscription i ON i.subscription_id = d.subscription_id
JOIN ledger.app a ON a.app_id = i.app_id
WHERE NOT EXISTS (SELECT FROM ledger.ownership o WHERE o.subscription_id = d.subscription_id AND o.customer_id = d.customer_id)
ORDER BY key
