-- Verify: returns present ownerships after $1 up to $2 that conflict with another: two customers own the same item at
-- one time.
SELECT o.ownership_id AS key, a.bundle_id, COALESCE(s.environment, p.environment)::text AS environment,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id,
       p.product_id, NULL::bigint AS receipt_id,
       'two customers own it at the same time' AS detail
FROM ledger.ownership o
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id)
JOIN ledger.app a ON a.app_id = COALESCE(s.app_id, p.app_id)
WHERE o.ownership_id > $1::bigint AND o.ownership_id <= $2::bigint AND upper_inf(o.known)
  AND (EXISTS (
        SELECT FROM ledger.ownership x
        WHERE x.subscription_id = o.subscription_id AND x.ownership_id <> o.ownership_id AND upper_inf(x.known)
          AND x.valid && o.valid)
    OR EXISTS (
        SELECT FROM ledger.ownership x
        WHERE x.purchase_id = o.purchase_id AND x.ownership_id <> o.ownership_id AND upper_inf(x.known)
          AND x.valid && o.valid))
ORDER BY o.ownership_id
