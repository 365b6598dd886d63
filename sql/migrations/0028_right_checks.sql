-- Lookups' log of changes: an answer of Apple's that changes nothing but clocks is told with them, and need not be read.

-- The clocks are of the subscriptions checked, and then of the purchases, in order.
ALTER TABLE ledger.right_change
    ADD COLUMN checked_subscriptions bigint[], ADD COLUMN checked_purchases bigint[],
    ADD COLUMN as_ofs timestamptz[], ADD COLUMN checked_ats timestamptz[];

-- Of a subscription's own row rights rest on these three columns and the clocks; what else they rest on is noted with its spans.
CREATE FUNCTION ledger.note_checked_subscriptions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change (subscriptions, checked_subscriptions, as_ofs, checked_ats)
    SELECT array_agg(c.subscription_id) FILTER (WHERE NOT o.only_clocks),
           array_agg(c.subscription_id) FILTER (WHERE o.only_clocks),
           array_agg(c.as_of) FILTER (WHERE o.only_clocks), array_agg(c.checked_at) FILTER (WHERE o.only_clocks)
    FROM changed c
    JOIN before b USING (subscription_id)
    CROSS JOIN LATERAL (
        SELECT (c.app_id, c.environment, c.expires_at) IS NOT DISTINCT FROM (b.app_id, b.environment, b.expires_at)
               AND num_nulls(c.as_of, c.checked_at) = 0 AS only_clocks) o
    HAVING count(*) > 0;
    RETURN NULL;
END
$$;
DROP TRIGGER rights_noted_on_update ON ledger.subscription;
CREATE TRIGGER rights_noted_on_update AFTER UPDATE ON ledger.subscription
    REFERENCING OLD TABLE AS before NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_checked_subscriptions();

CREATE FUNCTION ledger.note_checked_purchases() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.right_change (purchases, checked_purchases, as_ofs, checked_ats)
    SELECT array_agg(c.purchase_id) FILTER (WHERE NOT o.only_clocks),
           array_agg(c.purchase_id) FILTER (WHERE o.only_clocks),
           array_agg(c.as_of) FILTER (WHERE o.only_clocks), array_agg(c.checked_at) FILTER (WHERE o.only_clocks)
    FROM changed c
    JOIN before b USING (purchase_id)
    CROSS JOIN LATERAL (
        SELECT (c.app_id, c.environment, c.product_id, c.purchased_at, c.revoked_at, c.first_recorded_at, c.facts_recorded_at)
               IS NOT DISTINCT FROM
               (b.app_id, b.environment, b.product_id, b.purchased_at, b.revoked_at, b.first_recorded_at, b.facts_recorded_at)
               AND num_nulls(c.as_of, c.checked_at) = 0 AS only_clocks) o
    HAVING count(*) > 0;
    RETURN NULL;
END
$$;
DROP TRIGGER rights_noted_on_update ON ledger.purchase;
CREATE TRIGGER rights_noted_on_update AFTER UPDATE ON ledger.purchase
    REFERENCING OLD TABLE AS before NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_checked_purchases();
DROP FUNCTION ledger.note_purchases();

-- What customers may use, as ledger.entitlements tells it, with the subscription or purchase that each right comes from, and whether
-- another source of the right differs in clocks alone, so that a check may make it the one that is told.
CREATE FUNCTION ledger.entitlement_sources(customer_ids bigint[], valid_at timestamptz, known_at timestamptz)
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
    ORDER BY n.asked, e.entitlement, e.place, e.environment, e.granted DESC, e.until DESC NULLS FIRST, e.basis DESC,
             e.checked_at DESC, e.product_id;
END
$$;
REVOKE EXECUTE ON FUNCTION ledger.entitlement_sources(bigint[], timestamptz, timestamptz) FROM PUBLIC;

-- As before.
CREATE OR REPLACE FUNCTION ledger.entitlements(customer_ids bigint[], valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    customer_id bigint, entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz, expires_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.customer_id, s.entitlement, s.granted, s.until, s.product_id, s.state, s.reason, s.environment, s.basis, s.as_of,
           s.checked_at, s.expires_at
    FROM ledger.entitlement_sources(entitlements.customer_ids, entitlements.valid_at, entitlements.known_at) s;
END
$$;
