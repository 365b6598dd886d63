-- Locks and reads those of subscriptions ($1) that no other transaction is changing, in natural-key order; their
-- timelines are read after the lock.
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by, s.version,
       s.as_of, s.checked_at, s.recorded_at, s.next_check_at, s.renewal, s.renewal_as_of, s.renewal_path, s.suspected,
       s.leeway_ms
FROM ledger.subscription s
WHERE s.subscription_id = ANY($1::bigint[])
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR NO KEY UPDATE OF s SKIP LOCKED
