-- Gives committed events, at most $1, their positions in the feed; the caller's transaction holds the feed's lock.
WITH last AS (
    SELECT COALESCE(max(position), 0) AS position FROM ledger.event_feed
), taken AS (
    DELETE FROM ledger.event_outbox o
    WHERE o.event_id IN (SELECT event_id FROM ledger.event_outbox ORDER BY event_id LIMIT $1::int)
    RETURNING o.event_id
)
INSERT INTO ledger.event_feed (position, event_id)
SELECT last.position + row_number() OVER (ORDER BY t.event_id), t.event_id
FROM taken t CROSS JOIN last
