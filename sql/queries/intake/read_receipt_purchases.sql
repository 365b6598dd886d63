-- Upload: returns what receipt $1 holds: each one-time purchase, and each period of its subscriptions, with every
-- transaction id, whether customer $2, by any name, owns it, whether its owner only points at it, which order it pays, which
-- one its account token names, and whether it is another's: its token names another customer, or another customer paid it.
WITH buyer AS MATERIALIZED (
    SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id
    FROM ledger.receipt r JOIN ledger.customer c ON c.app_id = r.app_id AND c.name = $2::text
    WHERE r.receipt_id = $1::bigint
), item AS (
    SELECT p.app_id, p.purchase_id, NULL::bigint AS subscription_id, p.environment::text AS environment,
           p.original_transaction_id, p.transaction_id, p.transaction_ids, p.product_id, p.quantity, p.purchased_at,
           p.revoked_at IS NOT NULL AS is_revoked, p.revoked_at,
           COALESCE(d.kind = 'non_consumable', false) AS is_restorable,
           COALESCE(o.customer_id = (SELECT b.customer_id FROM buyer b), false) AS is_owner,
           o.cause IS NOT DISTINCT FROM 'pointer' AS is_pointed, false AS is_renewal,
           (SELECT r.order_id::text FROM ledger.purchase_order r WHERE r.purchase_id = p.purchase_id) AS pays,
           lower(p.app_account_token) AS token,
           ledger.is_shared(p.facts #>> '{ownership,word}') AS is_shared
    FROM ledger.receipt_purchase l
    JOIN ledger.purchase p USING (purchase_id)
    LEFT JOIN ledger.product d ON d.app_id = p.app_id AND d.product_id = p.product_id
    LEFT JOIN ledger.ownership o ON o.purchase_id = p.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid)
    WHERE l.receipt_id = $1::bigint AND p.version > 0
    UNION ALL
    SELECT s.app_id, NULL, s.subscription_id, s.environment::text, s.original_transaction_id, a.ids[1], a.ids,
           e.product_id, e.quantity, e.purchased_at, e.cancelled_at IS NOT NULL AND NOT e.is_upgraded, e.cancelled_at,
           true, COALESCE(o.customer_id = (SELECT b.customer_id FROM buyer b), false), o.cause IS NOT DISTINCT FROM 'pointer',
           EXISTS (
               SELECT FROM ledger.period b
               WHERE b.subscription_id = e.subscription_id AND b.expires_at = e.purchased_at),
           (SELECT r.order_id::text FROM ledger.purchase_order r
            WHERE r.subscription_id = e.subscription_id AND r.period_id = e.period_id), lower(e.app_account_token),
           ledger.is_shared(e.ownership)
    FROM ledger.receipt_subscription l
    JOIN ledger.subscription s USING (subscription_id)
    JOIN ledger.period e USING (subscription_id)
    CROSS JOIN LATERAL (
        SELECT array_agg(a.transaction_id ORDER BY a.transaction_id COLLATE "C") AS ids
        FROM ledger.transaction_alias a WHERE a.period_id = e.period_id) a
    LEFT JOIN ledger.ownership o ON o.subscription_id = s.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid)
    WHERE l.receipt_id = $1::bigint AND s.version > 0 AND a.ids IS NOT NULL
)
SELECT i.*,
       (SELECT n.order_id::text FROM ledger.purchase_order n
        WHERE n.app_account_token = ledger.account_token(i.token) AND n.app_id = i.app_id) AS token_order,
       i.is_shared OR EXISTS (
           SELECT FROM ledger.customer c
           WHERE c.app_id = i.app_id AND c.name IN (i.token, upper(i.token))
             AND COALESCE(c.merged_into, c.customer_id) <> (SELECT b.customer_id FROM buyer b)) AS is_of_another
FROM item i
ORDER BY i.purchased_at, i.original_transaction_id, i.transaction_id
