-- Orders: locks the orders that one-time purchases $1, the periods of subscriptions $2 and the receipts $3 may pay, and
-- returns their ids.
SELECT id::text AS order_id FROM unnest(ledger.lock_payable($1::bigint[], $2::bigint[], $3::bigint[])) AS id
