-- Settlement: gives the orders and deliveries of line items ($3) to the periods of the subscriptions ($2) to which they
-- moved from others ($1). Their turns go on where they are.
WITH moved AS MATERIALIZED (
    SELECT b.subscription_id AS old_subscription, b.period_id AS old_period, a.subscription_id, a.period_id,
           s.original_transaction_id
    FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS n(old_subscription, subscription_id, web_order_line_item_id)
    JOIN ledger.period b
        ON b.subscription_id = n.old_subscription AND b.web_order_line_item_id = n.web_order_line_item_id
    JOIN ledger.period a
        ON a.subscription_id = n.subscription_id AND a.web_order_line_item_id = n.web_order_line_item_id
    JOIN ledger.subscription s ON s.subscription_id = n.subscription_id
), orders AS (
    UPDATE ledger.purchase_order o SET subscription_id = m.subscription_id, period_id = m.period_id
    FROM moved m
    WHERE o.subscription_id = m.old_subscription AND o.period_id = m.old_period
)
UPDATE ledger.delivery d
SET subscription_id = m.subscription_id, period_id = m.period_id, original_transaction_id = m.original_transaction_id
FROM moved m
WHERE d.subscription_id = m.old_subscription AND d.period_id = m.old_period
  AND NOT EXISTS (
      SELECT FROM ledger.delivery l WHERE l.subscription_id = m.subscription_id AND l.period_id = m.period_id)
