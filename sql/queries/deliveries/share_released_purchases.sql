-- Deliveries: the next purchases of product $2 of app $1 after $3, at most $4, kept from settlements until this
-- transaction ends.
SELECT p.purchase_id FROM ledger.purchase p
WHERE p.purchase_id IN (
    SELECT n.purchase_id FROM ledger.purchase n
    WHERE n.app_id = $1::int AND n.product_id = $2::text AND n.purchase_id > $3::bigint
    ORDER BY n.purchase_id LIMIT $4::int)
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR SHARE
