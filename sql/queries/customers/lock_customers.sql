-- Merge, split and erase: locks customers ($1) against all other transactions, uploads included, after what they own.
SELECT customer_id, name, COALESCE(merged_into, customer_id) AS head_id
FROM ledger.customer WHERE customer_id = ANY($1::bigint[]) ORDER BY customer_id FOR UPDATE
