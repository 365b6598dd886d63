-- Locks and reads subscriptions in natural-key order: those named ($1 apps, $2 environments, $3 ids), those that
-- receipts ($4) poll, and those with row ids $5. Settlements and handovers between receipts run it.
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by, s.version,
       s.as_of, s.checked_at, s.recorded_at, s.next_check_at, s.renewal, s.renewal_as_of, s.renewal_path, s.suspected,
       s.leeway_ms
FROM ledger.subscription s
WHERE s.subscription_id IN (
    SELECT named.subscription_id
    FROM unnest($1::int[], $2::text[], $3::text[]) AS k(app_id, environment, original_transaction_id)
    JOIN ledger.subscription named
        ON named.app_id = k.app_id AND named.environment = k.environment::ledger.environment
       AND named.original_transaction_id = k.original_transaction_id
    UNION
    SELECT polled.subscription_id FROM ledger.subscription polled WHERE polled.polled_by = ANY($4::bigint[])
    UNION
    SELECT unnest($5::bigint[]))
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR NO KEY UPDATE OF s
