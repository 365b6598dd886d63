-- Settlement, step 3: locks and reads the batch's subscriptions in natural-key order ($1 apps, $2 environments, $3 ids).
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by, s.version,
       s.as_of, s.checked_at, s.recorded_at, s.next_check_at, s.renewal, s.renewal_as_of, s.suspected, s.leeway_ms,
       (SELECT r.receipt_created_at FROM ledger.receipt r WHERE r.receipt_id = s.polled_by) AS polled_by_created_at
FROM unnest($1::int[], $2::text[], $3::text[]) AS k(app_id, environment, original_transaction_id)
JOIN ledger.subscription s
    ON s.app_id = k.app_id AND s.environment = k.environment::ledger.environment
   AND s.original_transaction_id = k.original_transaction_id
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR NO KEY UPDATE OF s
