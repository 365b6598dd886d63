-- Returns customers whose name begins with $1, or who have the transaction $2 or sent the receipt $3 (nulls: none), at
-- most $4.
SELECT a.bundle_id, c.name, c.created_at
FROM ledger.customer c JOIN ledger.app a USING (app_id)
WHERE c.customer_id IN (
    (SELECT p.customer_id FROM ledger.app
     CROSS JOIN LATERAL (
         SELECT c.customer_id FROM ledger.customer c
         WHERE c.app_id = app.app_id AND c.name LIKE $1::text ORDER BY c.name USING ~<~ LIMIT $4::int) p LIMIT $4::int)
    UNION
    (SELECT o.customer_id FROM ledger.subscription s JOIN ledger.ownership o USING (subscription_id)
     WHERE s.app_id = ANY (ARRAY(SELECT app_id FROM ledger.app)) AND s.environment IN ('Production', 'Sandbox')
       AND s.original_transaction_id = $2::text LIMIT $4::int)
    UNION
    (SELECT o.customer_id
     FROM ledger.transaction_alias t JOIN ledger.period USING (period_id) JOIN ledger.ownership o USING (subscription_id)
     WHERE t.transaction_id = $2::text LIMIT $4::int)
    UNION
    (SELECT o.customer_id FROM ledger.purchase p JOIN ledger.ownership o USING (purchase_id)
     WHERE p.app_id = ANY (ARRAY(SELECT app_id FROM ledger.app)) AND p.environment IN ('Production', 'Sandbox')
       AND p.original_transaction_id = $2::text LIMIT $4::int)
    UNION
    (SELECT u.customer_id FROM ledger.upload u WHERE u.receipt_id = $3::bigint LIMIT $4::int))
ORDER BY a.bundle_id, c.name LIMIT $4::int
