-- Deliveries: gives committed deliveries their positions, at most $1, and queues those that are due; this transaction has
-- the queue's lock.
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
    RETURNING d.app_id, d.environment, d.position, d.delivery_id, d.state
)
INSERT INTO ledger.due_delivery (app_id, environment, position, delivery_id)
SELECT app_id, environment, position, delivery_id FROM placed WHERE state = 'due' ORDER BY position
