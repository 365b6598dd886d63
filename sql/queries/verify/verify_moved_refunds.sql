-- Verify: returns subscriptions after $1 up to $2 to which a period moved that was refunded, if no event reports the refund
-- although the subscription that the period came from was known before.
SELECT s.subscription_id AS key, a.bundle_id, s.environment::text AS environment, s.original_transaction_id,
       NULL AS product_id, NULL::bigint AS receipt_id,
       format('the refund of the period %s, which came from %s, has no event', t.web_order_line_item_id,
              f.original_transaction_id) AS detail
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
JOIN ledger.period t ON t.subscription_id = s.subscription_id
CROSS JOIN LATERAL (
    SELECT h.subscription_id, h.original_transaction_id
    FROM ledger.period p JOIN ledger.subscription h USING (subscription_id)
    WHERE p.web_order_line_item_id = t.web_order_line_item_id AND p.is_upgraded
      AND p.cancellation_reason = 'moved to ' || s.original_transaction_id
      AND h.app_id = s.app_id AND h.environment = s.environment OFFSET 0) f
WHERE s.subscription_id > $1::bigint AND s.subscription_id <= $2::bigint
  AND t.web_order_line_item_id IS NOT NULL AND t.cancelled_at IS NOT NULL AND NOT t.is_upgraded
  AND t.cancelled_at > (SELECT min(e.as_of) FROM ledger.event e WHERE e.subscription_id = f.subscription_id)
  AND NOT EXISTS (
    SELECT FROM ledger.period p JOIN ledger.event e USING (subscription_id)
    WHERE p.web_order_line_item_id = t.web_order_line_item_id AND e.kind::text = 'refund.granted'
      AND e.detail ->> 'web_order_line_item_id' = t.web_order_line_item_id)
ORDER BY s.subscription_id
