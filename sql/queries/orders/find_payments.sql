-- Orders: returns which unpaid orders the one-time purchases $1 and the periods of subscriptions $2 may pay, and locks
-- these orders; $3 are receipts that were sent for orders, $4 is how many ms after the purchase an order may be placed.
SELECT p.order_id::text AS order_id, p.created_at, p.cause, p.environment::text AS environment, p.purchase_id,
       p.subscription_id, p.period_id, p.purchased_at, p.transaction_id
FROM ledger.find_payments($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint * interval '1 ms') p
