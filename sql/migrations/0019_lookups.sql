-- Lookups that stay fast: one pass over a customer's spans, found by index in every plan, planned once a session.

-- Everything the customer owned at valid_at that grants, or once granted, something. Each step starts from the one
-- before (OFFSET 0): left to itself the planner takes "known at this instant" for rare and reads everybody's spans.
CREATE OR REPLACE FUNCTION ledger.entitlement_source(
    app_id int, customer_id bigint, valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, as_of timestamptz, checked_at timestamptz, subscription_id bigint,
    purchase_id bigint)
LANGUAGE sql STABLE AS $$
    WITH owned AS MATERIALIZED (
        SELECT o.subscription_id, o.purchase_id FROM ledger.ownership o
        WHERE o.customer_id = entitlement_source.customer_id AND o.valid @> valid_at AND o.known @> known_at
    ), span AS MATERIALIZED (
        SELECT s.subscription_id, s.environment, s.as_of, s.checked_at, known.valid, known.state, known.reason,
               known.entitled, known.product_id, known.held_until
        FROM owned o
        CROSS JOIN LATERAL (
            SELECT s.* FROM ledger.subscription s
            WHERE s.subscription_id = o.subscription_id AND s.app_id = entitlement_source.app_id OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT c.* FROM ledger.subscription_span c
            WHERE c.subscription_id = o.subscription_id AND c.known @> known_at OFFSET 0) known
    ), product AS MATERIALIZED (
        SELECT p.product_id, g.entitlement
        FROM (SELECT DISTINCT span.product_id FROM span) p
        CROSS JOIN LATERAL ledger.grants(entitlement_source.app_id, p.product_id, valid_at, known_at) g
    )
    SELECT past.entitlement,
           (current.entitled OR held) AND EXISTS (
               SELECT FROM product g WHERE g.product_id = current.product_id AND g.entitlement = past.entitlement),
           CASE WHEN held THEN current.held_until
                WHEN current.entitled THEN (
                    SELECT min(lower(later.valid)) FROM span later
                    WHERE later.subscription_id = current.subscription_id AND lower(later.valid) > valid_at
                      AND NOT (later.state = current.state AND EXISTS (
                          SELECT FROM product g
                          WHERE g.product_id = later.product_id AND g.entitlement = past.entitlement)))
                END,
           current.product_id,
           CASE WHEN held THEN 'awaiting_renewal' ELSE current.state::text END,
           CASE WHEN held THEN 'renewal' ELSE current.reason::text END,
           current.environment, current.as_of, current.checked_at, current.subscription_id, NULL::bigint
    FROM span current
    CROSS JOIN LATERAL (SELECT ledger.is_held(current.valid, current.held_until, valid_at) AS held) h
    CROSS JOIN LATERAL (
        SELECT DISTINCT g.entitlement
        FROM span earlier JOIN product g USING (product_id)
        WHERE earlier.subscription_id = current.subscription_id AND earlier.entitled
          AND lower(earlier.valid) <= valid_at) past
    WHERE current.valid @> valid_at
    UNION ALL
    SELECT g.entitlement,
           NOT revoked, NULL, p.product_id,
           CASE WHEN revoked THEN 'revoked' ELSE 'active' END,
           CASE WHEN revoked THEN 'refund' END,
           p.environment, p.as_of, p.checked_at, NULL, p.purchase_id
    FROM owned o
    CROSS JOIN LATERAL (
        SELECT p.* FROM ledger.purchase p
        WHERE p.purchase_id = o.purchase_id AND p.app_id = entitlement_source.app_id OFFSET 0) p
    CROSS JOIN LATERAL (
        SELECT p.purchased_at, p.revoked_at WHERE COALESCE(p.facts_recorded_at, p.first_recorded_at) <= known_at
        UNION ALL
        SELECT h.purchased_at, h.revoked_at FROM ledger.purchase_past h
        WHERE h.purchase_id = p.purchase_id AND h.known @> known_at) then_known
    CROSS JOIN LATERAL (SELECT COALESCE(then_known.revoked_at <= valid_at, false) AS revoked) r
    CROSS JOIN LATERAL ledger.grants(p.app_id, p.product_id, valid_at, known_at) g
    WHERE then_known.purchased_at <= valid_at
$$;

-- The same as before; in PL/pgSQL, because a session then plans it once and not at every call.
CREATE OR REPLACE FUNCTION ledger.entitlements(
    app_id int, customer_id bigint, valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    -- Whose things the name stood for then: see ledger.customer_at.
    who bigint := COALESCE(
        (SELECT m.into_id FROM ledger.customer_merge m
         WHERE m.customer_id = entitlements.customer_id
           AND m.applies @> LEAST(entitlements.valid_at, entitlements.known_at)),
        entitlements.customer_id);
BEGIN
    RETURN QUERY
    SELECT DISTINCT ON (e.entitlement)
        e.entitlement, e.granted, e.until, e.product_id, e.state, e.reason, e.environment, e.basis, e.as_of,
        e.checked_at
    FROM ledger.right_source(entitlements.app_id, who, valid_at, known_at) e
    ORDER BY e.entitlement, e.place, e.environment, e.granted DESC, e.until DESC NULLS FIRST, e.basis DESC,
             e.checked_at DESC, e.product_id;
END
$$;

-- The same as before, planned once a session.
CREATE OR REPLACE FUNCTION perennial.entitled_at(
    bundle_id text, customer text, entitlement text, valid_at timestamptz, known_at timestamptz DEFAULT now())
RETURNS TABLE (
    granted boolean, until timestamptz, product_id text, state text, reason text, environment text, basis text,
    checked_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT COALESCE(e.granted, false), e.until, e.product_id, e.state, e.reason, e.environment::text,
           COALESCE(e.basis, 'none'), e.checked_at
    FROM (VALUES (1)) one
    LEFT JOIN (
        SELECT x.*
        FROM ledger.app a
        JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = entitled_at.customer
        CROSS JOIN LATERAL ledger.entitlements(
            a.app_id, c.customer_id, COALESCE(entitled_at.valid_at, now()), COALESCE(entitled_at.known_at, now())) x
        WHERE a.bundle_id = entitled_at.bundle_id AND x.entitlement = entitled_at.entitlement) e ON true;
END
$$;
