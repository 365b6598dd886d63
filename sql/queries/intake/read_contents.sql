-- Upload: returns the subscriptions in receipt $1 and their owners, in natural-key order.
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by, s.version,
       ledger.as_of(s, poller) AS as_of, ledger.checked_at(s, poller) AS checked_at, s.recorded_at,
       ledger.next_check_at(s, poller) AS next_check_at, s.renewal, ledger.renewal_as_of(s, poller) AS renewal_as_of,
       s.renewal_path, s.suspected,
       s.leeway_ms, c.name AS owner
FROM ledger.receipt_subscription l
JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
LEFT JOIN ledger.ownership o ON o.subscription_id = s.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid)
LEFT JOIN ledger.customer c USING (customer_id)
WHERE l.receipt_id = $1::bigint
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
