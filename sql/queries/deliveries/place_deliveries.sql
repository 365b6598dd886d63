-- Deliveries: gives committed deliveries their positions, at most $1; this transaction has the queue's lock.
SELECT FROM (SELECT ledger.place_deliveries($1::int)) AS placed
