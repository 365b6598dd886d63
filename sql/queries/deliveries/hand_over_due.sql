-- Deliveries: purchases ($1) and subscriptions ($2) belong to the customers of the orders that claimed them ($3): what is
-- still due to another customer is skipped, and becomes due to this one under an id of its own.
WITH claimed AS MATERIALIZED (
    SELECT n.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS n(purchase_id, subscription_id, customer_id)
), skipped AS (
    UPDATE ledger.delivery d
    SET state = 'skipped', settled_at = clock_timestamp(), settled_by = 'perennial', skip_reason = 'claimed_by_order'
    FROM claimed n
    WHERE d.state = 'due' AND d.customer_id <> n.customer_id
      AND (d.purchase_id = n.purchase_id OR d.subscription_id = n.subscription_id)
    RETURNING d.*, n.customer_id AS claimer_id
), turn AS (
    SELECT s.*, s.customer_id AS given_to, s.turn + 1 AS next_turn, 'transfer' AS next_reason, NULL::uuid AS paid_order
    FROM skipped s
    UNION ALL
    SELECT s.*, s.claimer_id, s.turn + 2, s.reason, o.order_id
    FROM skipped s
    LEFT JOIN ledger.purchase_order o
      ON o.purchase_id = s.purchase_id OR (o.subscription_id = s.subscription_id AND o.period_id = s.period_id)
)
INSERT INTO ledger.delivery (
    app_id, environment, customer_id, product_id, kind, credit, units, turn, reason, order_id, purchase_id,
    subscription_id, period_id, transaction_id, original_transaction_id, state, settled_at, settled_by, skip_reason)
SELECT t.app_id, t.environment, t.given_to, t.product_id, t.kind, t.credit, t.units, t.next_turn, t.next_reason,
       t.paid_order, t.purchase_id, t.subscription_id, t.period_id, t.transaction_id, t.original_transaction_id,
       CASE WHEN t.next_turn % 2 = 1 THEN 'due' ELSE 'skipped' END::ledger.delivery_state,
       CASE WHEN t.next_turn % 2 = 0 THEN clock_timestamp() END, CASE WHEN t.next_turn % 2 = 0 THEN 'perennial' END,
       CASE WHEN t.next_turn % 2 = 0 THEN 'claimed_by_order' END
FROM turn t
ORDER BY t.delivery_id, t.next_turn
