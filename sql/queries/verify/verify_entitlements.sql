-- Verify: returns customers after $1 up to $2 about whom something else is stored than their sources give from now on.
-- It names them by key, because workers log it.
SELECT d.customer_id AS key, a.bundle_id, NULL AS environment, NULL AS original_transaction_id, NULL AS product_id,
       NULL::bigint AS receipt_id,
       format('what is stored of %s for the customer with the key %s is not what its sources give',
              min(d.entitlement COLLATE "C"), d.customer_id) AS detail
FROM ledger.entitlement_differences(ARRAY(
    SELECT v.customer_id FROM ledger.current_entitlements v
    WHERE v.customer_id > $1::bigint AND v.customer_id <= $2::bigint)) d
JOIN ledger.customer c USING (customer_id)
JOIN ledger.app a USING (app_id)
GROUP BY d.customer_id, a.bundle_id
ORDER BY d.customer_id
