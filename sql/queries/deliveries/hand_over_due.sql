-- Deliveries: purchases ($1) and subscriptions ($2) belong to the customers who took them by an order or an account token
-- ($3): what is still due to another customer is skipped, and becomes due to this one under an id of its own.
WITH claimed AS MATERIALIZED (
    SELECT n.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS n(purchase_id, subscription_id, customer_id)
), gone AS (
    DELETE FROM ledger.due_delivery q USING ledger.delivery d, claimed n
    WHERE d.delivery_id = q.delivery_id AND d.customer_id <> n.customer_id
      AND (d.purchase_id = n.purchase_id OR d.subscription_id = n.subscription_id)
    RETURNING d.*, n.customer_id AS claimer_id
), skipped AS (
    UPDATE ledger.delivery d
    SET skipped_at = clock_timestamp(), skipped_by = 'perennial', skip_reason = 'claimed_by_order'
    FROM gone g WHERE d.delivery_id = g.delivery_id
), turn AS (
    SELECT g.*, g.customer_id AS given_to, g.turn + 1 AS next_turn, 'transfer' AS next_reason, NULL::uuid AS paid_order
    FROM gone g
    UNION ALL
    SELECT g.*, g.claimer_id, g.turn + 2, g.reason, o.order_id
    FROM gone g
    LEFT JOIN ledger.purchase_order o
      ON o.purchase_id = g.purchase_id OR (o.subscription_id = g.subscription_id AND o.period_id = g.period_id)
), stored AS (
    INSERT INTO ledger.delivery (
        app_id, environment, customer_id, product_id, kind, credit, units, turn, reason, order_id, purchase_id,
        subscription_id, period_id, transaction_id, original_transaction_id, skipped_at, skipped_by, skip_reason)
    SELECT t.app_id, t.environment, t.given_to, t.product_id, t.kind, t.credit, t.units, t.next_turn, t.next_reason,
           t.paid_order, t.purchase_id, t.subscription_id, t.period_id, t.transaction_id, t.original_transaction_id,
           CASE WHEN t.next_turn % 2 = 0 THEN clock_timestamp() END, CASE WHEN t.next_turn % 2 = 0 THEN 'perennial' END,
           CASE WHEN t.next_turn % 2 = 0 THEN 'claimed_by_order' END
    FROM turn t
    ORDER BY t.delivery_id, t.next_turn
    RETURNING delivery_id, app_id, environment, order_id, skip_reason
)
INSERT INTO ledger.due_delivery (delivery_id, app_id, environment, order_id)
SELECT s.delivery_id, s.app_id, s.environment, s.order_id FROM stored s WHERE s.skip_reason IS NULL
