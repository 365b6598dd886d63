-- Orders: returns which unpaid orders the one-time purchases $1 and the periods of subscriptions $2 may pay, and locks
-- these orders; $3 is how many ms after the purchase an order may have been placed.
SELECT p.order_id::text AS order_id, p.created_at, p.by_token, p.environment::text AS environment, p.purchase_id,
       p.subscription_id, p.period_id, p.purchased_at, p.transaction_id
FROM ledger.find_payments($1::bigint[], $2::bigint[], $3::bigint * interval '1 ms') p
