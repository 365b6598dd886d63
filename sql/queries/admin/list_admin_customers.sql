-- Customers: looks at up to $7 customers of app $1 after the name $2, in the order of their bytes, and returns those with a
-- subscription in the state $3, of the product $4, and with net spending of at least $5 thousandths in a currency (nulls:
-- any), at most $6. Every row has the last name looked at and whether there may be more; without a name: none was found.
WITH page AS MATERIALIZED (
    SELECT c.customer_id, c.name, c.created_at FROM ledger.customer c
    WHERE c.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text) AND c.name ~>~ $2::text
      AND c.erased_at IS NULL AND c.merged_into IS NULL
    ORDER BY c.name USING ~<~ LIMIT $7::int
), owned AS MATERIALIZED (
    SELECT p.customer_id, o.subscription_id, o.purchase_id
    FROM page p
    CROSS JOIN LATERAL (
        SELECT o.subscription_id, o.purchase_id FROM ledger.ownership o
        WHERE o.customer_id = p.customer_id AND upper_inf(o.known) AND upper_inf(o.valid) OFFSET 0) o
), held AS (
    SELECT o.customer_id,
           array_agg(v.state ORDER BY v.entitled DESC, v.expires_at DESC) AS states,
           array_agg(COALESCE(v.reason, '') ORDER BY v.entitled DESC, v.expires_at DESC) AS reasons,
           array_agg(v.product_id ORDER BY v.entitled DESC, v.expires_at DESC) AS products,
           max(v.expires_at) AS expires_at, COALESCE(bool_or(v.state = $3::text), false) AS in_state,
           COALESCE(bool_or(v.product_id = $4::text), false) AS of_product
    FROM owned o
    CROSS JOIN LATERAL (
        SELECT v.state, v.reason, v.entitled, v.expires_at, v.product_id FROM ledger.subscription_state v
        WHERE v.subscription_id = o.subscription_id OFFSET 0) v
    GROUP BY o.customer_id
), spent AS (
    SELECT t.customer_id, max(t.amount) AS most,
           array_agg(t.currency ORDER BY t.amount DESC, t.currency) AS currencies,
           array_agg(t.amount ORDER BY t.amount DESC, t.currency) AS amounts
    FROM (
        SELECT o.customer_id, r.currency, sum(r.amount_milliunits)::bigint AS amount
        FROM owned o JOIN ledger.summary_revenue r USING (subscription_id)
        WHERE r.currency IS NOT NULL AND r.occurred_at <= now()
        GROUP BY o.customer_id, r.currency) t
    GROUP BY t.customer_id
), found AS (
    SELECT p.name, p.created_at, h.states, h.reasons, h.products, h.expires_at, s.currencies, s.amounts
    FROM page p LEFT JOIN held h USING (customer_id) LEFT JOIN spent s USING (customer_id)
    WHERE ($3::text IS NULL OR h.in_state) AND ($4::text IS NULL OR h.of_product)
      AND ($5::bigint IS NULL OR s.most >= $5::bigint)
    ORDER BY p.name USING ~<~ LIMIT $6::int
)
SELECT f.name, f.created_at, COALESCE(f.states, '{}') AS states, COALESCE(f.reasons, '{}') AS reasons,
       COALESCE(f.products, '{}') AS products, f.expires_at,
       COALESCE(f.currencies, '{}') AS currencies, COALESCE(f.amounts, '{}') AS amounts,
       CASE WHEN (SELECT count(*) FROM found) = $6::int
            THEN (SELECT n.name FROM found n ORDER BY n.name USING ~>~ LIMIT 1)
            ELSE (SELECT n.name FROM page n ORDER BY n.name USING ~>~ LIMIT 1) END AS last_name,
       (SELECT count(*) FROM found) = $6::int OR (SELECT count(*) FROM page) = $7::int AS is_more
FROM (SELECT) one LEFT JOIN found f ON true
ORDER BY f.name USING ~<~
