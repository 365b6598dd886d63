-- Orders: returns which unpaid orders the one-time purchases $1 and the periods of subscriptions $2 may pay, and locks
-- these orders. An account token names the order (by_token), and then no other. Else it is an open order of the owner
-- for the product, placed before the purchase or at most $3 ms after it; a renewal, which begins where a period ended,
-- pays none. What paid an order pays no other. OFFSET 0 keeps the planner to finding each step by index.
WITH owned AS MATERIALIZED (
    SELECT o.customer_id, o.purchase_id, o.subscription_id
    FROM unnest($1::bigint[]) AS n(id)
    CROSS JOIN LATERAL (
        SELECT o.* FROM ledger.ownership o
        WHERE o.purchase_id = n.id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
    UNION ALL
    SELECT o.customer_id, o.purchase_id, o.subscription_id
    FROM unnest($2::bigint[]) AS n(id)
    CROSS JOIN LATERAL (
        SELECT o.* FROM ledger.ownership o
        WHERE o.subscription_id = n.id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
), thing AS MATERIALIZED (
    SELECT o.customer_id, p.app_id, p.environment, p.product_id, p.purchase_id, NULL::bigint AS subscription_id,
           NULL::bigint AS period_id, p.transaction_id, p.purchased_at, ledger.account_token(p.app_account_token) AS token,
           NULL::timestamptz AS renews
    FROM owned o
    CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = o.purchase_id OFFSET 0) p
    WHERE p.version > 0 AND p.revoked_at IS NULL
    UNION ALL
    SELECT o.customer_id, s.app_id, s.environment, e.product_id, NULL, s.subscription_id, e.period_id, NULL, e.purchased_at,
           ledger.account_token(e.app_account_token),
           max(e.expires_at) OVER (
               PARTITION BY s.subscription_id ORDER BY e.expires_at
               RANGE BETWEEN UNBOUNDED PRECEDING AND '1 microsecond' PRECEDING)
    FROM owned o
    CROSS JOIN LATERAL (
        SELECT s.* FROM ledger.subscription s WHERE s.subscription_id = o.subscription_id OFFSET 0) s
    CROSS JOIN LATERAL (
        SELECT e.* FROM ledger.period e WHERE e.subscription_id = o.subscription_id OFFSET 0) e
    WHERE e.cancelled_at IS NULL OR e.is_upgraded
), candidate AS MATERIALIZED (
    SELECT t.*, r.order_id, true AS by_token
    FROM thing t
    CROSS JOIN LATERAL (
        SELECT r.order_id FROM ledger.purchase_order r
        WHERE r.app_account_token = t.token AND r.app_id = t.app_id AND r.product_id = t.product_id
          AND r.paid_at IS NULL OFFSET 0) r
    UNION ALL
    SELECT t.*, r.order_id, false
    FROM thing t
    CROSS JOIN LATERAL (
        SELECT c.customer_id FROM ledger.customer c WHERE c.customer_id = t.customer_id
        UNION ALL
        SELECT c.customer_id FROM ledger.customer c WHERE c.merged_into = t.customer_id OFFSET 0) n
    CROSS JOIN LATERAL (
        SELECT r.order_id FROM ledger.purchase_order r
        WHERE r.customer_id = n.customer_id AND r.product_id = t.product_id
          AND r.state IN ('created', 'purchasing', 'deferred')
          AND r.created_at <= t.purchased_at + $3::bigint * interval '1 ms' OFFSET 0) r
    WHERE t.renews IS DISTINCT FROM t.purchased_at
      AND (t.token IS NULL OR NOT EXISTS (
          SELECT FROM ledger.purchase_order n WHERE n.app_account_token = t.token OFFSET 0))
), free AS MATERIALIZED (
    SELECT c.* FROM candidate c
    CROSS JOIN LATERAL (
        SELECT count(*) AS paid FROM (
            SELECT FROM ledger.purchase_order r WHERE r.purchase_id = c.purchase_id
            UNION ALL
            SELECT FROM ledger.purchase_order r WHERE r.subscription_id = c.subscription_id AND r.period_id = c.period_id) r
    ) spent
    WHERE spent.paid = 0
)
SELECT r.order_id::text AS order_id, r.created_at, c.by_token, c.environment::text AS environment, c.purchase_id,
       c.subscription_id, c.period_id, c.purchased_at, COALESCE(c.transaction_id, (
           SELECT min(a.transaction_id COLLATE "C") FROM ledger.transaction_alias a WHERE a.period_id = c.period_id))
           AS transaction_id
FROM free c
CROSS JOIN LATERAL (
    SELECT r.* FROM ledger.purchase_order r
    WHERE r.order_id = c.order_id AND r.paid_at IS NULL AND r.state <> 'delivered' FOR NO KEY UPDATE) r
ORDER BY r.order_id
