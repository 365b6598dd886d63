-- Verify: returns the end of the next slice of at most $2 apps after $1; null when there are none.
SELECT max(n.app_id)::bigint AS until
FROM (SELECT app_id FROM ledger.app WHERE app_id > $1::bigint ORDER BY app_id LIMIT $2::int) n
