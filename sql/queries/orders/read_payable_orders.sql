-- Orders: returns those of $1 that are unpaid, or paid and not delivered, with what pays them and the state before. Of what
-- Apple sells one at a time the quantity is null; an open order has the transaction that it awaits.
SELECT r.order_id::text AS order_id, COALESCE(c.merged_into, c.customer_id) AS customer_id, r.product_id,
       CASE WHEN NOT COALESCE(ledger.is_bought_singly(d.kind), false) THEN r.quantity END AS quantity,
       r.created_at, r.app_account_token::text AS app_account_token, r.purchase_id, r.subscription_id, r.period_id,
       was.is_open, CASE WHEN was.is_open THEN ledger.awaited_transaction(r.order_id) END AS awaits
FROM unnest($1::text[]) AS n(id)
CROSS JOIN LATERAL (SELECT r.* FROM ledger.purchase_order r WHERE r.order_id = n.id::uuid OFFSET 0) r
JOIN ledger.customer c USING (customer_id)
LEFT JOIN ledger.product d ON d.app_id = r.app_id AND d.product_id = r.product_id
LEFT JOIN LATERAL (
    SELECT g.state FROM ledger.order_change g
    WHERE r.state = 'paid' AND g.order_id = r.order_id AND g.state NOT IN ('paid', 'delivered', 'refunded')
    ORDER BY g.ordinal DESC LIMIT 1) prior ON true
CROSS JOIN LATERAL (
    SELECT COALESCE(prior.state, r.state) IN ('created', 'purchasing', 'deferred') AS is_open OFFSET 0) was
WHERE r.state IN ('created', 'purchasing', 'deferred', 'cancelled', 'failed', 'expired', 'paid')
ORDER BY r.order_id
