-- Products and promotional offers that an app shows.

-- name: read_buyer
-- Offers: returns what counts for what app $1 offers customer $2 on the device with the hash $3 (null: none is known), at
-- most $4 rows, and one row without a holding where there is none. A holding is a subscription, or another customer's
-- non-renewing one: owned; in a receipt that the customer sent; or of another who ordered from the device. Each row has
-- the one-time products that the customer owns now. OFFSET 0 keeps the planner to finding each by key.
WITH buyer AS MATERIALIZED (
    SELECT a.app_id, COALESCE(c.merged_into, c.customer_id) AS customer_id
    FROM ledger.app a
    LEFT JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = $2::text
    WHERE a.bundle_id = $1::text
), person AS MATERIALIZED (
    SELECT b.customer_id FROM buyer b
    UNION
    (SELECT DISTINCT COALESCE(c.merged_into, c.customer_id)
     FROM buyer b
     JOIN ledger.purchase_order o ON o.device = $3::bytea AND o.app_id = b.app_id
     JOIN ledger.customer c ON c.customer_id = o.customer_id
     LIMIT $4::int)
), found AS MATERIALIZED (
    SELECT n.subscription_id, n.purchase_id, bool_or(n.in_receipt) AS in_receipt
    FROM (
        SELECT w.subscription_id, w.purchase_id, false AS in_receipt
        FROM person p
        CROSS JOIN LATERAL (
            SELECT w.* FROM ledger.ownership w
            WHERE w.customer_id = p.customer_id AND upper_inf(w.known) AND w.valid @> now() OFFSET 0) w
        UNION ALL
        SELECT l.subscription_id, NULL, true
        FROM buyer b
        JOIN ledger.upload u USING (customer_id)
        JOIN ledger.receipt_subscription l USING (receipt_id)
        UNION ALL
        SELECT NULL, l.purchase_id, true
        FROM buyer b
        JOIN ledger.upload u USING (customer_id)
        JOIN ledger.receipt_purchase l USING (receipt_id)) n
    GROUP BY n.subscription_id, n.purchase_id
), owned AS MATERIALIZED (
    SELECT f.*, COALESCE(w.customer_id = b.customer_id, false) AS is_own,
           w.customer_id IS NOT NULL AND w.customer_id IS DISTINCT FROM b.customer_id AS is_of_another
    FROM found f
    CROSS JOIN buyer b
    LEFT JOIN LATERAL (
        SELECT w.customer_id FROM ledger.ownership w
        WHERE w.subscription_id = f.subscription_id AND upper_inf(w.known) AND w.valid @> now()
        UNION ALL
        SELECT w.customer_id FROM ledger.ownership w
        WHERE w.purchase_id = f.purchase_id AND upper_inf(w.known) AND w.valid @> now()
        OFFSET 0) w ON true
), holding AS (
    SELECT o.is_own, o.is_of_another, o.in_receipt, s.environment, current.product_id,
           current.state IN ('active', 'grace_period', 'billing_retry', 'awaiting_renewal')
               OR ledger.is_in_outage_allowance(current.valid, current.allowed_until, s.at) AS is_current,
           'family_shared' = ANY(current.flags) AS is_shared,
           e.product_ids, array_remove(e.group_ids || s.group_id, NULL) AS group_ids, e.had_introductory,
           array_remove(e.offer_ids || (s.renewal ->> 'promotional_offer_id'), NULL) AS offer_ids, e.purchased_at, (
               SELECT a.transaction_id
               FROM ledger.period p JOIN ledger.transaction_alias a USING (period_id)
               WHERE p.subscription_id = s.subscription_id
               ORDER BY p.purchased_at DESC, a.transaction_id COLLATE "C" LIMIT 1) AS transaction_id
    FROM owned o
    CROSS JOIN LATERAL (
        SELECT s.subscription_id, s.environment, s.group_id, s.renewal, GREATEST(now(), ledger.as_of(s, poller)) AS at
        FROM ledger.subscription s LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
        WHERE s.subscription_id = o.subscription_id AND s.version > 0 OFFSET 0) s
    CROSS JOIN LATERAL (
        SELECT p.* FROM ledger.subscription_span p
        WHERE p.subscription_id = s.subscription_id AND upper_inf(p.known) AND lower(p.valid) <= s.at
        ORDER BY lower(p.valid) DESC LIMIT 1) current
    CROSS JOIN LATERAL (
        SELECT array_agg(DISTINCT p.product_id) AS product_ids, array_agg(DISTINCT p.group_id) AS group_ids,
               bool_or((p.is_trial OR p.is_intro) AND NOT ledger.is_shared(p.ownership)) AS had_introductory,
               array_agg(DISTINCT p.promotional_offer_id) AS offer_ids, max(p.purchased_at) AS purchased_at
        FROM ledger.period p WHERE p.subscription_id = s.subscription_id) e
    WHERE e.product_ids IS NOT NULL
    UNION ALL
    SELECT false, true, o.in_receipt, p.environment, p.product_id, false, false, ARRAY[p.product_id], '{}', false, '{}',
           p.purchased_at, NULL
    FROM owned o
    CROSS JOIN LATERAL (
        SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = o.purchase_id AND p.version > 0 OFFSET 0) p
    JOIN ledger.product d ON d.app_id = p.app_id AND d.product_id = p.product_id AND d.kind = 'non_renewing'
    WHERE o.is_of_another
), bought AS (
    SELECT p.product_id
    FROM buyer b
    CROSS JOIN LATERAL (
        SELECT p.*
        FROM ledger.ownership w JOIN ledger.purchase p USING (purchase_id)
        WHERE w.customer_id = b.customer_id AND upper_inf(w.known) AND w.valid @> now() AND p.version > 0 OFFSET 0) p
    JOIN ledger.product d ON d.app_id = p.app_id AND d.product_id = p.product_id
        AND d.kind IN ('non_consumable', 'non_renewing')
    GROUP BY p.environment, p.product_id, d.kind
    HAVING CASE d.kind
        WHEN 'non_consumable' THEN bool_or(p.revoked_at IS NULL)
        ELSE now() < ledger.non_renewing_end(p.purchased_at, p.quantity * ledger.non_renewing_duration(
            p.app_id, p.product_id, p.first_recorded_at, now(), 'infinity'), p.revoked_at
            ORDER BY p.purchased_at, p.original_transaction_id COLLATE "C") END
)
SELECT now() AS now, ARRAY(SELECT DISTINCT o.product_id FROM bought o) AS bought, h.*
FROM buyer b
LEFT JOIN (
    SELECT * FROM holding h
    ORDER BY h.is_own DESC, h.in_receipt DESC, h.environment, h.purchased_at DESC LIMIT $4::int) h ON true
ORDER BY h.is_own DESC, h.in_receipt DESC, h.environment, h.purchased_at DESC

-- name: read_order_token
-- Offers: returns the account token of order $3 of app $1, and what it is for; no row: it is no order of customer $2.
SELECT o.product_id, o.app_account_token::text AS app_account_token, o.paid_at IS NOT NULL AS is_paid
FROM ledger.app a
JOIN ledger.purchase_order o ON o.app_id = a.app_id AND o.order_id = $3::text::uuid
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer n ON n.app_id = a.app_id AND n.name = $2::text
WHERE a.bundle_id = $1::text
  AND COALESCE(c.merged_into, c.customer_id) = COALESCE(n.merged_into, n.customer_id)
