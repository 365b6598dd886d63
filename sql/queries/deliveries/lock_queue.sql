-- Deliveries: locks the queue, so that one transaction gives positions at a time; returns whether a delivery waits.
SELECT EXISTS (SELECT FROM ledger.delivery d WHERE d.position IS NULL) AS is_behind
FROM ledger.delivery_queue q FOR NO KEY UPDATE OF q
