-- Settlement: inserts purchases seen for the first time ($1 apps, $2 environments, $3 ids, $4 products).
INSERT INTO ledger.purchase (app_id, environment, original_transaction_id, product_id)
SELECT k.app_id, k.environment::ledger.environment, k.original_transaction_id, k.product_id
FROM unnest($1::int[], $2::text[], $3::text[], $4::text[]) AS k(app_id, environment, original_transaction_id, product_id)
ORDER BY k.app_id, k.environment::ledger.environment, k.original_transaction_id COLLATE "C", k.product_id COLLATE "C"
ON CONFLICT DO NOTHING
