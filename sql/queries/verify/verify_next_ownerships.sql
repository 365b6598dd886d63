-- Verify: returns the end of the next slice of at most $2 ownerships after $1; null when there are none.
SELECT max(n.ownership_id) AS until
FROM (SELECT ownership_id FROM ledger.ownership WHERE ownership_id > $1::bigint ORDER BY ownership_id LIMIT $2::int) n
