-- Orders: returns the ids of the orders that the receipts $1 may pay, without a lock.
SELECT id::text AS order_id FROM unnest(ledger.payable_orders('{}', '{}', $1::bigint[])) AS id
