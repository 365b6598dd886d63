-- Deliveries: returns whether a committed delivery has no position yet.
SELECT EXISTS (SELECT FROM ledger.delivery d WHERE d.position IS NULL) AS is_behind
