-- Reads subscriptions by their natural keys: apps $1, environments $2, ids $3. It locks nothing.
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by, s.version,
       s.as_of, s.checked_at, s.recorded_at, s.next_check_at, s.renewal, s.renewal_as_of, s.renewal_path, s.suspected,
       s.leeway_ms
FROM unnest($1::int[], $2::text[], $3::text[]) AS k (app_id, environment, original_transaction_id)
JOIN ledger.subscription s
  ON s.app_id = k.app_id AND s.environment = k.environment::ledger.environment
 AND s.original_transaction_id = k.original_transaction_id
