-- Orders: makes orders ($1) unpaid at $2, because what paid them pays another order: they are again what they were before.
UPDATE ledger.purchase_order o
SET state = n.state, cause = 'moved', environment = NULL, transaction_id = NULL, paid_at = NULL, purchase_id = NULL,
    subscription_id = NULL, period_id = NULL,
    changed_at = GREATEST($2::timestamptz, o.changed_at + interval '1 microsecond')
FROM unnest($1::text[]) AS i(id)
CROSS JOIN LATERAL (
    SELECT g.state FROM ledger.order_change g
    WHERE g.order_id = i.id::uuid AND g.state NOT IN ('paid', 'delivered', 'refunded')
    ORDER BY g.ordinal DESC LIMIT 1) n
WHERE o.order_id = i.id::uuid AND o.state = 'paid'
