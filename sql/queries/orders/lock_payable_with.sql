-- Orders: locks the new orders $1 that something may pay which was bought before, at most $2 ms before them, and the payable
-- orders beside them; returns their ids.
SELECT id::text AS order_id
FROM unnest(ledger.lock_payable_with($1::text[]::uuid[], $2::bigint * interval '1 ms')) AS id
