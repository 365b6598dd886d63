-- Orders: marks orders ($1) as paid, by $2 causes, $3 environments, $4 transactions, $5 Apple's dates, $6 one-time
-- purchases or $7 subscriptions and $8 periods, at $9.
UPDATE ledger.purchase_order o
SET state = 'paid', cause = n.cause, environment = n.environment::ledger.environment, transaction_id = n.transaction_id,
    paid_at = n.paid_at, purchase_id = n.purchase_id, subscription_id = n.subscription_id, period_id = n.period_id,
    -- A settlement reads its clock before it waits for an order that is placed at the same time.
    changed_at = GREATEST($9::timestamptz, o.changed_at + interval '1 microsecond')
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::bigint[], $7::bigint[], $8::bigint[])
    AS n(order_id, cause, environment, transaction_id, paid_at, purchase_id, subscription_id, period_id)
WHERE o.order_id = n.order_id::uuid AND o.paid_at IS NULL
