-- Rebuild: returns the applied notifications about subscriptions and purchases ($1 apps, $2 environments, $3 original
-- transaction ids), in the order in which they came.
SELECT n.notification_id, n.app_id, n.environment::text AS environment, n.original_transaction_id, n.texts, n.signed_at, n.effect,
       n.claims::text AS claims
FROM unnest($1::int[], $2::text[], $3::text[]) AS k(app_id, environment, original_transaction_id)
JOIN ledger.notification n
    ON n.app_id = k.app_id AND n.environment = k.environment::ledger.environment
   AND n.original_transaction_id = k.original_transaction_id
WHERE n.effect IN ('applied', 'stated')
ORDER BY n.notification_id
