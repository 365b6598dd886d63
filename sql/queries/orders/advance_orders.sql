-- Orders: makes the orders that one-time purchases $1 or subscriptions $2 pay delivered when the turns that give are
-- settled, and refunded when the take-back is.
UPDATE ledger.purchase_order o
SET state = n.state, cause = n.cause, changed_at = clock_timestamp()
FROM (
    SELECT o.order_id,
           CASE WHEN last.turn % 2 = 1 THEN 'delivered' ELSE 'refunded' END::ledger.order_state AS state,
           last.state::text AS cause
    FROM ledger.purchase_order o
    CROSS JOIN LATERAL (
        SELECT d.turn, d.state FROM ledger.delivery d
        WHERE d.order_id = o.order_id AND d.state <> 'due'
        ORDER BY d.turn DESC LIMIT 1) last
    WHERE (o.purchase_id = ANY($1::bigint[]) OR o.subscription_id = ANY($2::bigint[]))) n
WHERE o.order_id = n.order_id AND o.state <> n.state
