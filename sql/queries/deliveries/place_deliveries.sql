-- Deliveries: gives committed deliveries their positions, at most $1; this transaction has the queue's lock.
WITH place AS MATERIALIZED (
    SELECT d.delivery_id, row_number() OVER (ORDER BY d.delivery_id) AS place
    FROM (SELECT d.delivery_id FROM ledger.delivery d WHERE d.position IS NULL ORDER BY d.delivery_id LIMIT $1::int) d
), queue AS (
    UPDATE ledger.delivery_queue q SET position = q.position + n.deliveries
    FROM (SELECT count(*) AS deliveries FROM place) n
    WHERE n.deliveries > 0
    RETURNING q.position - n.deliveries AS last
), placed AS (
    UPDATE ledger.delivery d SET position = queue.last + place.place
    FROM place CROSS JOIN queue
    WHERE d.delivery_id = place.delivery_id
    RETURNING d.delivery_id, d.position
)
UPDATE ledger.due_delivery q SET position = placed.position
FROM placed WHERE q.delivery_id = placed.delivery_id
