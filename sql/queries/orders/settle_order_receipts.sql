-- Orders: marks receipts ($1) as settled for the orders that they were sent for.
UPDATE ledger.order_receipt x SET settled = true WHERE x.receipt_id = ANY($1::bigint[]) AND NOT x.settled
