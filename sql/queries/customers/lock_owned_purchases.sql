-- Assign, merge, split and erase: locks and reads one-time purchases in natural-key order, after the subscriptions:
-- those that customers ($1) own, those that receipts ($2) poll, and those with the id $4 in app $3.
SELECT p.purchase_id, p.app_id, p.environment::text AS environment, p.original_transaction_id, p.product_id, p.version,
       p.facts, p.transaction_ids, d.kind::text AS kind, ledger.as_of(p, poller) AS as_of, p.recorded_at, p.polled_by,
       ledger.next_check_at(p, poller) AS next_check_at
FROM ledger.purchase p
LEFT JOIN ledger.product d USING (app_id, product_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
WHERE p.purchase_id IN (
    SELECT o.purchase_id FROM ledger.ownership o
    WHERE o.customer_id = ANY($1::bigint[]) AND upper_inf(o.known) AND upper_inf(o.valid)
    UNION
    SELECT d.purchase_id FROM ledger.purchase d WHERE d.polled_by = ANY($2::bigint[])
    UNION
    SELECT n.purchase_id FROM ledger.purchase n
    WHERE n.app_id = $3::int AND n.environment = ANY(enum_range(NULL::ledger.environment))
      AND n.original_transaction_id = $4::text)
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR NO KEY UPDATE OF p
