-- Upload: returns what receipt $1 holds: each one-time purchase, and each period of its subscriptions, with every
-- transaction id, whether customer $2, by any name, owns it, and which order it pays.
WITH buyer AS MATERIALIZED (
    SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id
    FROM ledger.receipt r JOIN ledger.customer c ON c.app_id = r.app_id AND c.name = $2::text
    WHERE r.receipt_id = $1::bigint
)
SELECT p.purchase_id, NULL::bigint AS subscription_id, p.environment::text AS environment, p.original_transaction_id,
       p.transaction_id, p.transaction_ids, p.product_id, p.quantity, p.purchased_at, p.revoked_at IS NOT NULL AS is_revoked,
       p.revoked_at, COALESCE(d.kind = 'non_consumable', false) AS is_restorable,
       COALESCE(o.customer_id = (SELECT b.customer_id FROM buyer b), false) AS is_owner, false AS is_renewal,
       (SELECT r.order_id::text FROM ledger.purchase_order r WHERE r.purchase_id = p.purchase_id) AS pays
FROM ledger.receipt_purchase l
JOIN ledger.purchase p USING (purchase_id)
LEFT JOIN ledger.product d ON d.app_id = p.app_id AND d.product_id = p.product_id
LEFT JOIN ledger.ownership o ON o.purchase_id = p.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid)
WHERE l.receipt_id = $1::bigint AND p.version > 0
UNION ALL
SELECT NULL, s.subscription_id, s.environment::text, s.original_transaction_id, a.ids[1], a.ids, e.product_id, e.quantity,
       e.purchased_at, e.cancelled_at IS NOT NULL AND NOT e.is_upgraded, e.cancelled_at, true,
       COALESCE(o.customer_id = (SELECT b.customer_id FROM buyer b), false),
       EXISTS (SELECT FROM ledger.period b WHERE b.subscription_id = e.subscription_id AND b.expires_at = e.purchased_at),
       (SELECT r.order_id::text FROM ledger.purchase_order r
        WHERE r.subscription_id = e.subscription_id AND r.period_id = e.period_id)
FROM ledger.receipt_subscription l
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.period e USING (subscription_id)
CROSS JOIN LATERAL (
    SELECT array_agg(a.transaction_id ORDER BY a.transaction_id COLLATE "C") AS ids
    FROM ledger.transaction_alias a WHERE a.period_id = e.period_id) a
LEFT JOIN ledger.ownership o ON o.subscription_id = s.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid)
WHERE l.receipt_id = $1::bigint AND s.version > 0 AND a.ids IS NOT NULL
ORDER BY purchased_at, original_transaction_id, transaction_id
