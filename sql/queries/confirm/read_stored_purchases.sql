-- Reads one-time purchases by their natural keys: apps $1, environments $2, ids $3, products $4. It locks nothing.
SELECT p.purchase_id, p.app_id, p.environment::text AS environment, p.original_transaction_id, p.product_id, p.version,
       p.facts, p.transaction_ids, d.kind::text AS kind, p.as_of, p.recorded_at, p.polled_by, p.next_check_at
FROM unnest($1::int[], $2::text[], $3::text[], $4::text[]) AS k (app_id, environment, original_transaction_id, product_id)
JOIN ledger.purchase p
  ON p.app_id = k.app_id AND p.environment = k.environment::ledger.environment
 AND p.original_transaction_id = k.original_transaction_id AND p.product_id = k.product_id
LEFT JOIN ledger.product d ON d.app_id = p.app_id AND d.product_id = p.product_id
