-- Settlement, step 3: locks and reads the batch's purchases in natural-key order ($1 apps, $2 environments, $3 ids, $4 products).
SELECT p.purchase_id, p.app_id, p.environment::text AS environment, p.original_transaction_id, p.product_id, p.version,
       p.facts, p.transaction_ids, p.as_of, p.recorded_at
FROM unnest($1::int[], $2::text[], $3::text[], $4::text[]) AS k(app_id, environment, original_transaction_id, product_id)
JOIN ledger.purchase p
    ON p.app_id = k.app_id AND p.environment = k.environment::ledger.environment
   AND p.original_transaction_id = k.original_transaction_id AND p.product_id = k.product_id
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR NO KEY UPDATE OF p
