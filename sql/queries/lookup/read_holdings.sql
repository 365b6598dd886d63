-- Explain: returns the subscriptions in the receipts of customer $1 and those they own, with owner and start, at most
-- $2.
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by, s.version,
       ledger.as_of(s, d) AS as_of, ledger.checked_at(s, d) AS checked_at, s.recorded_at,
       ledger.next_check_at(s, d) AS next_check_at, s.renewal, ledger.renewal_as_of(s, d) AS renewal_as_of,
       s.renewal_path, s.suspected,
       s.leeway_ms, d.due_at, c.name AS owner, o.customer_id IS NOT DISTINCT FROM $1::bigint AS is_owner,
       lower(o.valid) AS owned_since, (
           SELECT e.kind::text FROM ledger.event e
           WHERE e.subscription_id = s.subscription_id AND e.kind IN ('ownership.assigned', 'ownership.transferred')
           ORDER BY e.version DESC, e.ordinal DESC LIMIT 1) AS owned_by
FROM ledger.subscription s
LEFT JOIN ledger.poll_schedule d ON d.receipt_id = s.polled_by
LEFT JOIN ledger.ownership o
    ON o.subscription_id = s.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid)
LEFT JOIN ledger.customer c USING (customer_id)
WHERE s.version > 0 AND s.subscription_id IN (
    SELECT l.subscription_id FROM ledger.receipt_subscription l JOIN ledger.upload u USING (receipt_id)
    WHERE u.customer_id = $1::bigint
    UNION
    SELECT w.subscription_id FROM ledger.ownership w WHERE w.customer_id = $1::bigint AND w.subscription_id IS NOT NULL)
ORDER BY s.environment, s.original_transaction_id COLLATE "C"
LIMIT $2::int
