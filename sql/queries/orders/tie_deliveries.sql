-- Orders: ties the deliveries of one-time purchases ($1) and of periods ($3 of subscriptions $2) to the orders that they pay.
SELECT FROM (SELECT ledger.tie_deliveries($1::bigint[], $2::bigint[], $3::bigint[])) AS tied
