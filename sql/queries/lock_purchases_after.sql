-- Rebuild: locks and reads the next one-time purchases after $1, at most $2, of app $3 and of the receipts of customer $4
-- (nulls: all), in natural-key order.
SELECT p.purchase_id, p.app_id, a.bundle_id, p.environment::text AS environment, p.original_transaction_id, p.product_id,
       p.version, p.facts, p.transaction_ids, p.as_of, p.recorded_at, p.checked_at, p.transaction_id, p.quantity,
       p.purchased_at, p.revoked_at, p.app_account_token
FROM ledger.purchase p
JOIN ledger.app a USING (app_id)
WHERE p.purchase_id IN (
    SELECT n.purchase_id FROM ledger.purchase n JOIN ledger.app b USING (app_id)
    WHERE n.purchase_id > $1::bigint AND n.version > 0 AND ($3::text IS NULL OR b.bundle_id = $3::text)
      AND ($4::text IS NULL OR EXISTS (
            SELECT FROM ledger.receipt_purchase l JOIN ledger.upload u USING (receipt_id)
            JOIN ledger.customer c USING (customer_id)
            WHERE l.purchase_id = n.purchase_id AND c.name = $4::text))
    ORDER BY n.purchase_id LIMIT $2::int)
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR NO KEY UPDATE OF p
