-- Verify: returns present ownerships after $1 up to $2 that conflict with another: two customers own the same item at
-- one time, or one who only pointed at it keeps it from another one who showed it later.
SELECT o.ownership_id AS key, a.bundle_id, COALESCE(s.environment, p.environment)::text AS environment,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id,
       p.product_id, trouble.receipt_id, trouble.detail
FROM ledger.ownership o
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id)
JOIN ledger.app a ON a.app_id = COALESCE(s.app_id, p.app_id)
CROSS JOIN LATERAL (
    SELECT NULL::bigint AS receipt_id, 'two customers own it at the same time' AS detail
    WHERE EXISTS (
            SELECT FROM ledger.ownership x
            WHERE x.subscription_id = o.subscription_id AND x.ownership_id <> o.ownership_id AND upper_inf(x.known)
              AND x.valid && o.valid)
       OR EXISTS (
            SELECT FROM ledger.ownership x
            WHERE x.purchase_id = o.purchase_id AND x.ownership_id <> o.ownership_id AND upper_inf(x.known)
              AND x.valid && o.valid)
    UNION ALL
    SELECT min(r.receipt_id), 'its owner only pointed at it, and another customer showed it later'
    FROM (SELECT l.receipt_id FROM ledger.receipt_subscription l WHERE l.subscription_id = o.subscription_id
          UNION ALL
          SELECT l.receipt_id FROM ledger.receipt_purchase l WHERE l.purchase_id = o.purchase_id) l
    JOIN ledger.receipt r ON r.receipt_id = l.receipt_id AND (r.vouched OR r.form = 'signed_transaction')
    JOIN ledger.upload u ON u.receipt_id = l.receipt_id
    WHERE o.cause = 'pointer' AND upper_inf(o.valid) AND u.settled AND u.customer_id <> o.customer_id
      AND u.uploaded_at > lower(o.known)
    HAVING count(*) > 0) trouble
WHERE o.ownership_id > $1::bigint AND o.ownership_id <= $2::bigint AND upper_inf(o.known)
ORDER BY o.ownership_id
