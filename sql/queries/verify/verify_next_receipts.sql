-- Verify: returns the end of the next slice of at most $2 receipts after $1; null when there are none.
SELECT max(n.receipt_id) AS until
FROM (SELECT receipt_id FROM ledger.receipt WHERE receipt_id > $1::bigint ORDER BY receipt_id LIMIT $2::int) n
