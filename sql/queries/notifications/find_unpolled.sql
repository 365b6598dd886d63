-- Returns the oldest verified notifications, at most $1, about what no receipt polls, of apps that have a server key by now;
-- locks them, and leaves out those that another worker has.
SELECT n.notification_id, n.app_id, n.environment::text AS environment,
       COALESCE(n.transaction_id, n.original_transaction_id) AS transaction_id
FROM ledger.notification n
JOIN ledger.server_key k USING (app_id)
JOIN ledger.app a USING (app_id)
WHERE n.effect = 'unpolled' AND a.removed_at IS NULL
ORDER BY n.notification_id LIMIT $1::int
FOR UPDATE OF n SKIP LOCKED
