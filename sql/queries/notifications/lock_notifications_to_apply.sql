-- Locks and returns the notifications that are to be applied now, at most $1, the longest due first. Another worker's are
-- left out.
SELECT n.notification_id, n.app_id, n.environment::text AS environment, n.original_transaction_id, n.attempts, n.texts,
       n.claims::text AS claims
FROM ledger.notification n
WHERE n.apply_at <= now()
ORDER BY n.apply_at, n.notification_id
LIMIT $1::int
FOR UPDATE SKIP LOCKED
