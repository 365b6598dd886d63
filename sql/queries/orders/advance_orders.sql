-- Orders: makes the orders that one-time purchases $1 or subscriptions $2 pay delivered when the turns that give are
-- settled, and refunded when the take-back is.
SELECT FROM (
    SELECT ledger.advance_orders(ARRAY(
        SELECT o.order_id FROM ledger.purchase_order o WHERE o.purchase_id = ANY($1::bigint[])
        UNION ALL
        SELECT o.order_id FROM ledger.purchase_order o WHERE o.subscription_id = ANY($2::bigint[])))) AS advanced
