-- Verify: returns the end of the next slice of at most $2 one-time purchases after $1; null when there are none.
SELECT max(n.purchase_id) AS until
FROM (SELECT purchase_id FROM ledger.purchase WHERE purchase_id > $1::bigint ORDER BY purchase_id LIMIT $2::int) n
