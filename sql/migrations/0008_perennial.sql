-- The views and functions of the schema perennial, which other people's SQL relies on.
CREATE VIEW perennial.subscription_now AS
SELECT a.bundle_id,
       s.environment::text AS environment,
       s.original_transaction_id,
       c.name AS customer,
       s.group_id AS subscription_group_identifier,
       current.product_id,
       CASE WHEN held THEN 'awaiting_renewal' ELSE current.state::text END AS state,
       CASE WHEN held THEN 'renewal' ELSE current.reason::text END AS reason,
       (current.entitled OR held) AS entitled,
       s.expires_at,
       CASE WHEN held THEN current.held_until
            WHEN current.state = 'active' THEN s.expires_at
            WHEN current.entitled THEN upper(current.valid) END AS entitled_until,
       s.will_renew,
       s.renews_to_product_id,
       CASE WHEN current.state = 'active' AND NOT held THEN ARRAY(
            SELECT f FROM unnest(
                current.flags || s.flags || CASE WHEN s.head_starts_at > clock.at THEN '{future_dated}'::text[] ELSE '{}' END) f
            GROUP BY f ORDER BY f COLLATE "C")
            ELSE current.flags END AS flags,
       s.periods,
       s.started_at,
       s.version,
       s.as_of,
       s.checked_at
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
CROSS JOIN LATERAL (SELECT GREATEST(now(), s.as_of) AS at) clock
JOIN LATERAL (
    SELECT * FROM ledger.subscription_span p
    WHERE p.subscription_id = s.subscription_id AND upper_inf(p.known) AND lower(p.valid) <= clock.at
    ORDER BY lower(p.valid) DESC LIMIT 1) current ON true
CROSS JOIN LATERAL ledger.is_held(current.valid, current.held_until, clock.at) held
LEFT JOIN ledger.ownership o
    ON o.subscription_id = s.subscription_id AND upper_inf(o.known) AND o.valid @> now()
LEFT JOIN ledger.customer c USING (customer_id)
WHERE s.version > 0;

CREATE VIEW perennial.entitlement_now AS
SELECT a.bundle_id, e.environment::text AS environment, c.name AS customer, e.entitlement, e.granted, e.until,
       e.product_id, e.state, e.reason, e.basis, e.as_of, e.checked_at
FROM ledger.customer c
JOIN ledger.app a USING (app_id)
CROSS JOIN LATERAL ledger.entitlements(c.app_id, c.customer_id, now(), now()) e;

CREATE VIEW perennial.event_log AS
SELECT f.position, a.bundle_id, e.environment::text AS environment,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id,
       c.name AS customer, e.kind::text AS kind, e.product_id, e.occurred_at, e.recorded_at, e.version, e.ordinal, e.detail
FROM ledger.event_feed f
JOIN ledger.event e USING (event_id)
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id)
LEFT JOIN ledger.customer c USING (customer_id);

CREATE VIEW perennial.purchase_now AS
SELECT a.bundle_id, p.environment::text AS environment, c.name AS customer, p.transaction_id, p.original_transaction_id,
       p.product_id, p.quantity, p.purchased_at, p.revoked_at
FROM ledger.purchase p
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.ownership o ON o.purchase_id = p.purchase_id AND upper_inf(o.known) AND o.valid @> now()
LEFT JOIN ledger.customer c USING (customer_id)
WHERE p.version > 0;

-- Charges and refunds at catalog prices: offers are not priced by the catalog, so their amount is unknown (null).
CREATE VIEW perennial.revenue_event AS
WITH movement AS (
    SELECT p.purchased_at AS occurred_at, s.app_id, s.environment, s.subscription_id, NULL::bigint AS purchase_id,
           s.original_transaction_id, 'charge' AS kind, p.product_id, p.quantity, 1 AS sign,
           (p.is_intro OR p.promotional_offer_id IS NOT NULL OR p.offer_code_ref_name IS NOT NULL) AS offered, p.recorded_at
    FROM ledger.period p JOIN ledger.subscription s USING (subscription_id)
    WHERE NOT p.is_trial AND p.ownership IS DISTINCT FROM 'FAMILY_SHARED'
    UNION ALL
    SELECT p.cancelled_at, s.app_id, s.environment, s.subscription_id, NULL, s.original_transaction_id, 'refund',
           p.product_id, p.quantity, -1,
           (p.is_intro OR p.promotional_offer_id IS NOT NULL OR p.offer_code_ref_name IS NOT NULL), p.cancellation_recorded_at
    FROM ledger.period p JOIN ledger.subscription s USING (subscription_id)
    WHERE NOT p.is_trial AND p.cancelled_at IS NOT NULL AND NOT p.is_upgraded AND p.ownership IS DISTINCT FROM 'FAMILY_SHARED'
    UNION ALL
    SELECT p.purchased_at, p.app_id, p.environment, NULL, p.purchase_id, p.original_transaction_id, 'charge', p.product_id,
           p.quantity, 1, false, p.first_recorded_at
    FROM ledger.purchase p WHERE p.version > 0
    UNION ALL
    SELECT p.revoked_at, p.app_id, p.environment, NULL, p.purchase_id, p.original_transaction_id, 'refund', p.product_id,
           p.quantity, -1, false, p.revocation_recorded_at
    FROM ledger.purchase p WHERE p.revoked_at IS NOT NULL)
SELECT m.occurred_at, a.bundle_id, m.environment::text AS environment, c.name AS customer, m.original_transaction_id, m.kind,
       m.product_id,
       CASE WHEN NOT m.offered THEN m.sign * m.quantity * d.price_milliunits END AS amount_milliunits,
       CASE WHEN NOT m.offered THEN d.currency END AS currency,
       CASE WHEN m.offered OR d.price_milliunits IS NULL THEN 'unknown' ELSE 'catalog' END AS price_basis,
       m.recorded_at
FROM movement m
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.product d ON d.app_id = m.app_id AND d.product_id = m.product_id
LEFT JOIN ledger.ownership o
    ON (o.subscription_id = m.subscription_id OR o.purchase_id = m.purchase_id) AND upper_inf(o.known) AND o.valid @> now()
LEFT JOIN ledger.customer c USING (customer_id);

-- Whether a customer had a right at valid_at, as known at known_at (null: now): always exactly one row.
CREATE FUNCTION perennial.entitled_at(
    bundle_id text, customer text, entitlement text, valid_at timestamptz, known_at timestamptz DEFAULT now())
RETURNS TABLE (
    granted boolean, until timestamptz, product_id text, state text, reason text, environment text, basis text,
    checked_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT COALESCE(e.granted, false), e.until, e.product_id, e.state, e.reason, e.environment::text,
           COALESCE(e.basis, 'none'), e.checked_at
    FROM (VALUES (1)) one
    LEFT JOIN (
        SELECT x.*
        FROM ledger.app a
        JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = entitled_at.customer
        CROSS JOIN LATERAL ledger.entitlements(
            a.app_id, c.customer_id, COALESCE(valid_at, now()), COALESCE(known_at, now())) x
        WHERE a.bundle_id = entitled_at.bundle_id AND x.entitlement = entitled_at.entitlement) e ON true
$$;
