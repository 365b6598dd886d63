-- Of several sources of one entitlement that Apple vouched for the one that grants it wins: an expired production subscription
-- does not hide a live sandbox one. Of equals production wins, then the later end. A verified source beats an imported word.
CREATE OR REPLACE FUNCTION ledger.entitlement_sources(customer_ids bigint[], valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    customer_id bigint, entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz, expires_at timestamptz,
    subscription_id bigint, purchase_id bigint, is_tied boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_nestloop = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    instant timestamptz := COALESCE(entitlement_sources.valid_at, now());
    knowledge timestamptz := CASE WHEN entitlement_sources.known_at < now() THEN entitlement_sources.known_at ELSE 'infinity' END;
    -- Whose things each name stood for then: see ledger.customer_at.
    who bigint[] := ARRAY(
        SELECT COALESCE(m.into_id, n.customer_id)
        FROM unnest(customer_ids) WITH ORDINALITY AS n(customer_id, place)
        LEFT JOIN LATERAL (
            SELECT m.into_id FROM ledger.customer_merge m
            WHERE m.customer_id = n.customer_id AND m.applies @> LEAST(instant, knowledge) OFFSET 0) m ON true
        ORDER BY n.place);
BEGIN
    RETURN QUERY
    SELECT DISTINCT ON (n.asked, e.entitlement)
        n.asked, e.entitlement, e.granted, e.until, e.product_id, e.state, e.reason, e.environment, e.basis, e.as_of,
        e.checked_at, e.expires_at, e.subscription_id, e.purchase_id,
        count(*) OVER (PARTITION BY n.asked, e.entitlement, e.place, e.environment, e.granted, e.until, e.basis) > 1
    FROM unnest(customer_ids, who) AS n(asked, found)
    JOIN ledger.right_source(who, instant, knowledge) e ON e.customer_id = n.found
    ORDER BY n.asked, e.entitlement, e.place, e.granted DESC, e.environment, e.until DESC NULLS FIRST, e.basis DESC,
             e.checked_at DESC, e.product_id;
END
$$;
