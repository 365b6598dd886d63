-- The feed of events: positions and reading.

-- name: lock_feed
-- Makes this transaction the only sequencer of the feed, or reports that another one is at work.
SELECT pg_try_advisory_xact_lock(hashtext('ledger.sequence_feed')) AS locked

-- name: sequence_feed
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

-- name: read_feed_head
-- Feed: returns its present id and its newest position.
SELECT f.feed_id, f.position FROM ledger.feed_here f

-- name: read_feed
-- Feed: returns events after position $1 up to position $2 of app $3 (null: every app), in order, at most $4.
SELECT f.position, e.public_id, a.bundle_id, e.environment::text AS environment,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id, c.name AS customer,
       e.kind::text AS kind, e.product_id, e.occurred_at, e.recorded_at, e.version, e.ordinal, e.detail
FROM ledger.event_feed f
JOIN ledger.event e USING (event_id)
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id)
LEFT JOIN ledger.customer c USING (customer_id)
WHERE f.position > $1::bigint AND f.position <= $2::bigint AND ($3::text IS NULL OR a.bundle_id = $3::text)
ORDER BY f.position LIMIT $4::int

-- name: check_feed_place
-- Feed: stores a new id where the database is not the one that got the old id; the table's trigger makes the id.
UPDATE ledger.feed f SET position = f.position WHERE f.place <> ledger.feed_place() RETURNING f.former_id, f.feed_id

-- name: renew_feed
-- Feed: gives it a new id by manual request, if $1 is its present id or null.
UPDATE ledger.feed f SET feed_id = gen_random_uuid(), former_id = f.feed_id, renewed_at = clock_timestamp()
WHERE $1::text IS NULL OR f.feed_id::text = lower($1::text)
RETURNING f.former_id, f.feed_id
