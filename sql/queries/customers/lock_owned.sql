-- Assign, merge, split and erase: locks and reads subscriptions in natural-key order: those that customers ($1) own,
-- those that receipts ($2) poll, and those with the id $4 in app $3.
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by, s.version,
       ledger.as_of(s, poller) AS as_of, ledger.checked_at(s, poller) AS checked_at, s.recorded_at,
       ledger.next_check_at(s, poller) AS next_check_at, s.renewal, ledger.renewal_as_of(s, poller) AS renewal_as_of,
       s.renewal_path, s.suspected, s.leeway_ms
FROM ledger.subscription s
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
WHERE s.subscription_id IN (
    SELECT o.subscription_id FROM ledger.ownership o
    WHERE o.customer_id = ANY($1::bigint[]) AND upper_inf(o.known) AND upper_inf(o.valid)
    UNION
    SELECT p.subscription_id FROM ledger.subscription p WHERE p.polled_by = ANY($2::bigint[])
    UNION
    SELECT n.subscription_id FROM ledger.subscription n
    WHERE n.app_id = $3::int AND n.environment = ANY(enum_range(NULL::ledger.environment))
      AND n.original_transaction_id = $4::text)
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR NO KEY UPDATE OF s
