-- Assigns feed positions to committed events, at most $1; this transaction has the feed's lock. The feed stores its
-- newest position separately: even if its newest rows are ever lost, none of their positions is assigned again.
WITH taken AS (
    DELETE FROM ledger.event_outbox o
    WHERE o.event_id IN (SELECT event_id FROM ledger.event_outbox ORDER BY event_id LIMIT $1::int)
    RETURNING o.event_id
), placed AS (
    SELECT t.event_id, row_number() OVER (ORDER BY t.event_id) AS place FROM taken t
), feed AS (
    UPDATE ledger.feed f SET position = f.position + n.events
    FROM (SELECT count(*) AS events FROM placed) n
    WHERE n.events > 0
    RETURNING f.position - n.events AS last
)
INSERT INTO ledger.event_feed (position, event_id)
SELECT feed.last + placed.place, placed.event_id FROM placed CROSS JOIN feed
