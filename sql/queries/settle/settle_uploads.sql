-- Settlement: marks uploads ($1 receipts, $2 customers) as handled.
UPDATE ledger.upload u SET settled = true
FROM unnest($1::bigint[], $2::bigint[]) AS n(receipt_id, customer_id)
WHERE u.receipt_id = n.receipt_id AND u.customer_id = n.customer_id
