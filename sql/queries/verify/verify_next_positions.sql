-- Verify: returns the end of the next slice of at most $2 positions of the feed after $1; null when there are none.
SELECT CASE WHEN newest.position > $1::bigint THEN LEAST($1::bigint + $2::int, newest.position) END AS until
FROM (SELECT GREATEST(f.position, (SELECT max(p.position) FROM ledger.event_feed p)) AS position FROM ledger.feed f) newest
