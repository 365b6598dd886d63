-- Settlement: inserts subscriptions seen for the first time ($1 apps, $2 environments, $3 ids).
INSERT INTO ledger.subscription (app_id, environment, original_transaction_id)
SELECT k.app_id, k.environment::ledger.environment, k.original_transaction_id
FROM unnest($1::int[], $2::text[], $3::text[]) AS k(app_id, environment, original_transaction_id)
ORDER BY k.app_id, k.environment::ledger.environment, k.original_transaction_id COLLATE "C"
ON CONFLICT DO NOTHING
