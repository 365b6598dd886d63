-- Explain: returns the one-time purchases in the receipts of customer $1 and those they own, with owner and start, at
-- most $2.
SELECT p.purchase_id, p.app_id, p.environment::text AS environment, p.original_transaction_id, p.product_id, p.version,
       p.facts, p.transaction_ids, d.kind::text AS kind, ledger.as_of(p, poller) AS as_of, p.recorded_at,
       ledger.checked_at(p, poller) AS checked_at, p.polled_by, ledger.next_check_at(p, poller) AS next_check_at,
       c.name AS owner,
       o.customer_id IS NOT DISTINCT FROM $1::bigint AS is_owner, lower(o.valid) AS owned_since, (
           SELECT e.kind::text FROM ledger.event e
           WHERE e.purchase_id = p.purchase_id AND e.kind IN ('ownership.assigned', 'ownership.transferred')
           ORDER BY e.version DESC, e.ordinal DESC LIMIT 1) AS owned_by
FROM ledger.purchase p
LEFT JOIN ledger.product d USING (app_id, product_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
LEFT JOIN ledger.ownership o ON o.purchase_id = p.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid)
LEFT JOIN ledger.customer c USING (customer_id)
WHERE p.version > 0 AND p.purchase_id IN (
    SELECT l.purchase_id FROM ledger.receipt_purchase l JOIN ledger.upload u USING (receipt_id)
    WHERE u.customer_id = $1::bigint
    UNION
    SELECT w.purchase_id FROM ledger.ownership w WHERE w.customer_id = $1::bigint AND w.purchase_id IS NOT NULL)
ORDER BY p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
LIMIT $2::int
