-- Orders: returns which unpaid orders the one-time purchases $1 and the periods of subscriptions $2 may pay, and locks
-- these orders. An account token names the order (by_token), and then no other. Else it is an open order of the owner
-- for the product, placed before the purchase or at most $3 ms after it; a renewal, which begins where a period ended,
-- pays none. What paid an order pays no other.
WITH thing AS MATERIALIZED (
    SELECT p.app_id, p.environment, p.product_id, p.purchase_id, NULL::bigint AS subscription_id,
           NULL::bigint AS period_id, p.transaction_id, p.purchased_at, ledger.account_token(p.app_account_token) AS token,
           o.customer_id, false AS is_renewal
    FROM ledger.purchase p
    JOIN ledger.ownership o ON o.purchase_id = p.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid)
    WHERE p.purchase_id = ANY($1::bigint[]) AND p.version > 0 AND p.revoked_at IS NULL
      AND NOT EXISTS (SELECT FROM ledger.purchase_order r WHERE r.purchase_id = p.purchase_id)
    UNION ALL
    SELECT s.app_id, s.environment, e.product_id, NULL, s.subscription_id, e.period_id, (
               SELECT min(a.transaction_id COLLATE "C") FROM ledger.transaction_alias a WHERE a.period_id = e.period_id),
           e.purchased_at, ledger.account_token(e.app_account_token), o.customer_id, EXISTS (
               SELECT FROM ledger.period b WHERE b.subscription_id = e.subscription_id AND b.expires_at = e.purchased_at)
    FROM ledger.period e
    JOIN ledger.subscription s USING (subscription_id)
    JOIN ledger.ownership o ON o.subscription_id = s.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid)
    WHERE e.subscription_id = ANY($2::bigint[]) AND (e.cancelled_at IS NULL OR e.is_upgraded)
      AND NOT EXISTS (
        SELECT FROM ledger.purchase_order r
        WHERE r.subscription_id = e.subscription_id AND r.period_id = e.period_id)
), candidate AS MATERIALIZED (
    SELECT t.*, r.order_id, true AS by_token
    FROM thing t JOIN ledger.purchase_order r ON r.app_account_token = t.token AND r.app_id = t.app_id
    WHERE r.product_id = t.product_id
    UNION ALL
    SELECT t.*, r.order_id, false
    FROM thing t
    JOIN ledger.customer n ON n.customer_id = t.customer_id OR n.merged_into = t.customer_id
    JOIN ledger.purchase_order r ON r.customer_id = n.customer_id AND r.product_id = t.product_id
     AND r.state IN ('created', 'purchasing', 'deferred')
     AND r.created_at <= t.purchased_at + $3::bigint * interval '1 ms'
    WHERE NOT t.is_renewal
      AND NOT EXISTS (SELECT FROM ledger.purchase_order n WHERE n.app_account_token = t.token AND n.app_id = t.app_id)
)
SELECT r.order_id::text AS order_id, r.created_at, c.by_token, c.environment::text AS environment, c.purchase_id,
       c.subscription_id, c.period_id, c.transaction_id, c.purchased_at
FROM candidate c JOIN ledger.purchase_order r USING (order_id)
WHERE r.paid_at IS NULL AND r.state <> 'delivered'
ORDER BY r.order_id FOR NO KEY UPDATE OF r
