-- Settlement: returns the verified notifications about subscriptions and purchases ($1 apps, $2 environments, $3 original
-- transaction ids) whose details are not part of the ledger yet, the oldest first, at most $4. Their subjects are locked.
SELECT n.notification_id, n.app_id, n.environment::text AS environment, n.original_transaction_id, n.texts,
       n.claims::text AS claims, n.signed_at, n.effect
FROM unnest($1::int[], $2::text[], $3::text[]) AS k(app_id, environment, original_transaction_id)
JOIN ledger.notification n
    ON n.app_id = k.app_id AND n.environment = k.environment::ledger.environment
   AND n.original_transaction_id = k.original_transaction_id
WHERE n.effect IN ('asked', 'planned', 'unpolled', 'unshown')
ORDER BY n.signed_at, n.notification_id LIMIT $4::int
