-- Locks and reads one-time purchases in natural-key order: those named ($1 apps, $2 environments, $3 ids, $4 products),
-- those that receipts ($5) poll, and those with row ids $6. Settlements and handovers between receipts run it.
SELECT p.purchase_id, p.app_id, p.environment::text AS environment, p.original_transaction_id, p.product_id, p.version,
       p.facts, p.transaction_ids, d.kind::text AS kind, p.as_of, p.recorded_at, p.polled_by, p.next_check_at
FROM ledger.purchase p
LEFT JOIN ledger.product d USING (app_id, product_id)
WHERE p.purchase_id IN (
    SELECT named.purchase_id
    FROM unnest($1::int[], $2::text[], $3::text[], $4::text[]) AS k(app_id, environment, original_transaction_id, product_id)
    JOIN ledger.purchase named
        ON named.app_id = k.app_id AND named.environment = k.environment::ledger.environment
       AND named.original_transaction_id = k.original_transaction_id AND named.product_id = k.product_id
    UNION
    SELECT polled.purchase_id FROM ledger.purchase polled WHERE polled.polled_by = ANY($5::bigint[])
    UNION
    SELECT unnest($6::bigint[]))
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR NO KEY UPDATE OF p
