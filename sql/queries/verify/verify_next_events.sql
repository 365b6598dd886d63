-- Verify: returns the end of the next slice of at most $2 events after $1; null when there are none.
SELECT max(n.event_id) AS until
FROM (SELECT event_id FROM ledger.event WHERE event_id > $1::bigint ORDER BY event_id LIMIT $2::int) n
