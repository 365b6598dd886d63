-- Merge and split: moves what was delivered of one-time purchases ($1) and of subscriptions ($2) from customers ($3)
-- to customer $4, without a turn.
UPDATE ledger.delivery d SET customer_id = $4::bigint
WHERE (d.purchase_id = ANY($1::bigint[]) OR d.subscription_id = ANY($2::bigint[]))
  AND d.customer_id = ANY($3::bigint[])
