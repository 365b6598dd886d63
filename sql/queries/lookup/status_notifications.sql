-- Returns the apps with verified notifications about what no receipt polls, and about how many subscriptions and purchases;
-- whether each has a server key, so that a worker takes them up.
SELECT a.bundle_id, count(DISTINCT (n.environment, n.original_transaction_id)) AS subjects, k.app_id IS NOT NULL AS has_key
FROM ledger.notification n JOIN ledger.app a USING (app_id) LEFT JOIN ledger.server_key k USING (app_id)
WHERE n.effect = 'unpolled' AND a.removed_at IS NULL
GROUP BY a.bundle_id, k.app_id ORDER BY a.bundle_id
