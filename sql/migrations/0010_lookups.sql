-- The read model of lookups: what each customer may use from now on, and the functions that every lookup goes through.

-- A transaction that changes what customers may use computes their rows anew before it commits. A new catalog and an
-- import outdate rows, and a worker renews those; lookups compute what is outdated or missing.
CREATE TABLE ledger.current_entitlements (
    customer_id         bigint PRIMARY KEY REFERENCES ledger.customer ON DELETE CASCADE,
    app_id              int NOT NULL,
    catalog_changed_at  timestamptz NOT NULL,
    computed_at         timestamptz NOT NULL,
    spans               ledger.entitlement_span[] NOT NULL,
    subscriptions       bigint[] NOT NULL,
    purchases           bigint[] NOT NULL
) WITH (fillfactor = 90);
CREATE INDEX current_entitlements_by_catalog ON ledger.current_entitlements (app_id, catalog_changed_at);
COMMENT ON TABLE ledger.current_entitlements IS
    'What a customer may use from the last change on. A customer without a row, or with an outdated one, has it '
    'computed at each lookup. Lookups of a merged name read the row of the customer whom it means';
COMMENT ON COLUMN ledger.current_entitlements.catalog_changed_at IS
    'The catalog by which it was computed (ledger.app.catalog_changed_at); another one outdates it';
COMMENT ON COLUMN ledger.current_entitlements.computed_at IS
    'When it was computed. A lookup never asks about an earlier instant, though a standby''s clock may be behind; a row '
    'of more than an hour ahead was computed while the clock was wrong, and is not used';
COMMENT ON COLUMN ledger.current_entitlements.spans IS 'All spans that end after computed_at';
COMMENT ON COLUMN ledger.current_entitlements.subscriptions IS
    'The subscriptions in spans, whose clocks a lookup reads by key';
COMMENT ON COLUMN ledger.current_entitlements.purchases IS 'The one-time purchases in spans, likewise';

CREATE FUNCTION ledger.compute_entitlements(customer_ids bigint[]) RETURNS SETOF ledger.current_entitlements
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_nestloop = off SET jit = off
AS $$
DECLARE
    at timestamptz := GREATEST(
        clock_timestamp(),
        (SELECT max(a.catalog_changed_at) FROM ledger.customer c JOIN ledger.app a USING (app_id)
         WHERE c.customer_id = ANY(customer_ids)));
BEGIN
    RETURN QUERY
    SELECT c.customer_id, c.app_id, a.catalog_changed_at, at,
           COALESCE(array_agg(s.span ORDER BY s.span) FILTER (WHERE NOT s.span IS NULL), '{}'),
           COALESCE(array_agg(DISTINCT (s.span).subscription_id) FILTER (WHERE (s.span).subscription_id IS NOT NULL), '{}'),
           COALESCE(array_agg(DISTINCT (s.span).purchase_id) FILTER (WHERE (s.span).purchase_id IS NOT NULL), '{}')
    FROM ledger.customer c
    JOIN ledger.app a USING (app_id)
    LEFT JOIN ledger.entitlement_spans(customer_ids, at, at, 'infinity') s USING (customer_id)
    WHERE c.customer_id = ANY(customer_ids)
    GROUP BY c.customer_id, c.app_id, a.catalog_changed_at;
END
$$;
COMMENT ON FUNCTION ledger.compute_entitlements IS
    'The rows of customers in ledger.current_entitlements as they are to be now. It is PL/pgSQL, because a session '
    'then plans it once. It joins by hashes: the planner does not know how many customers a call names, and would '
    'otherwise go through all rows in memory once per customer';

CREATE FUNCTION ledger.entitlement_differences(customer_ids bigint[])
RETURNS TABLE (customer_id bigint, entitlement text, stored text, computed text)
LANGUAGE sql STABLE AS $$
    WITH stored AS MATERIALIZED (
        SELECT v.* FROM ledger.current_entitlements v JOIN ledger.app a USING (app_id)
        WHERE v.customer_id = ANY(customer_ids) AND v.catalog_changed_at = a.catalog_changed_at
    ), computed AS MATERIALIZED (
        SELECT e.* FROM ledger.compute_entitlements(ARRAY(SELECT v.customer_id FROM stored v)) e
    ), span AS (
        SELECT v.customer_id, s AS span, true AS is_stored FROM stored v CROSS JOIN LATERAL unnest(v.spans) s
        UNION ALL
        SELECT e.customer_id, s, false FROM computed e CROSS JOIN LATERAL unnest(e.spans) s
    ), differing AS (
        SELECT s.customer_id, s.span, sum(CASE WHEN s.is_stored THEN 1 ELSE -1 END) > 0 AS is_stored
        FROM span s JOIN stored v USING (customer_id) JOIN computed e USING (customer_id)
        WHERE (s.span).ends > GREATEST(v.computed_at, e.computed_at)
        GROUP BY s.customer_id, s.span HAVING sum(CASE WHEN s.is_stored THEN 1 ELSE -1 END) <> 0
    )
    SELECT d.customer_id, (d.span).entitlement, string_agg(d.span::text, ' ' ORDER BY d.span) FILTER (WHERE d.is_stored),
           string_agg(d.span::text, ' ' ORDER BY d.span) FILTER (WHERE NOT d.is_stored)
    FROM differing d
    GROUP BY d.customer_id, (d.span).entitlement
$$;
COMMENT ON FUNCTION ledger.entitlement_differences IS
    'Customers and entitlements about which something else is stored than their sources give from now on, with the '
    'spans that only one of them has. Leaves out what another catalog or an import outdated';

CREATE FUNCTION ledger.entitlement_sources(customer_ids bigint[], valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (customer_id bigint, source ledger.entitlement_span, as_of timestamptz, checked_at timestamptz)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_nestloop = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    stored bigint[] := '{}';
BEGIN
    IF entitlement_sources.valid_at = now() AND entitlement_sources.known_at = 'infinity' THEN
        stored := ARRAY(
            SELECT v.customer_id FROM ledger.current_entitlements v JOIN ledger.app a USING (app_id)
            WHERE v.customer_id = ANY(customer_ids) AND v.catalog_changed_at = a.catalog_changed_at
              AND v.computed_at <= now() + interval '1 hour');
    END IF;
    RETURN QUERY
    WITH span AS MATERIALIZED (
        SELECT v.customer_id, s AS source, GREATEST(now(), v.computed_at) AS instant
        FROM ledger.current_entitlements v CROSS JOIN LATERAL unnest(v.spans) s
        WHERE v.customer_id = ANY(stored)
        UNION ALL
        SELECT e.customer_id, e.span, entitlement_sources.valid_at
        FROM ledger.entitlement_spans(
            ARRAY(SELECT unnest(customer_ids) EXCEPT SELECT unnest(stored)),
            entitlement_sources.valid_at, entitlement_sources.valid_at, entitlement_sources.known_at) e
    )
    SELECT s.customer_id, s.source, c.as_of, c.checked_at
    FROM span s
    LEFT JOIN LATERAL (
        SELECT ledger.as_of(b, poller) AS as_of, ledger.checked_at(b, poller) AS checked_at
        FROM ledger.subscription b LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = b.polled_by
        WHERE b.subscription_id = (s.source).subscription_id
          AND ledger.checked_at(b, poller) <= entitlement_sources.known_at
        UNION ALL
        SELECT ledger.as_of(p, poller), ledger.checked_at(p, poller)
        FROM ledger.purchase p LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
        WHERE p.purchase_id = (s.source).purchase_id
          AND ledger.checked_at(p, poller) <= entitlement_sources.known_at) c ON true
    WHERE (s.source).starts <= s.instant AND (s.source).ends > s.instant;
END
$$;
COMMENT ON FUNCTION ledger.entitlement_sources IS
    'Every source that gives, or gave, customers an entitlement at valid_at as known at known_at (infinity: all that '
    'is known), with its clocks; those later than known_at are null, because the clocks that they replaced are not '
    'kept. For now() and all knowledge it reads ledger.current_entitlements';

-- The function runs as its owner, so that readers of the schema perennial need no privilege on the ledger.
CREATE FUNCTION ledger.entitlements(customer_ids bigint[], valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    customer_id bigint, entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz, expires_at timestamptz,
    ended_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_nestloop = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    instant timestamptz := COALESCE(entitlements.valid_at, now());
    knowledge timestamptz := CASE WHEN entitlements.known_at < now() THEN entitlements.known_at ELSE 'infinity' END;
    -- The customer that each name meant then, as in ledger.customer_at.
    who bigint[] := ARRAY(
        SELECT COALESCE(m.into_id, n.customer_id)
        FROM unnest(customer_ids) WITH ORDINALITY AS n(customer_id, place)
        LEFT JOIN LATERAL (
            SELECT m.into_id FROM ledger.customer_merge m
            WHERE m.customer_id = n.customer_id AND m.applies @> LEAST(instant, knowledge) OFFSET 0) m ON true
        ORDER BY n.place);
BEGIN
    RETURN QUERY
    SELECT DISTINCT ON (n.asked, s.entitlement)
        n.asked, s.entitlement, s.granted, s.until, s.product_id, s.state, s.reason, s.environment, s.basis, e.as_of,
        e.checked_at, s.expires_at, s.ended_at
    FROM unnest(customer_ids, who) AS n(asked, found)
    JOIN ledger.entitlement_sources(who, instant, knowledge) e ON e.customer_id = n.found
    CROSS JOIN LATERAL (SELECT (e.source).*) s
    ORDER BY n.asked, s.entitlement, s.place, s.granted DESC, s.environment, s.until DESC NULLS FIRST,
             s.basis COLLATE "C" DESC, e.checked_at DESC, s.product_id COLLATE "C", s.subscription_id, s.purchase_id;
END
$$;
COMMENT ON FUNCTION ledger.entitlements IS
    'What customers may use, one row per customer and entitlement. The winner among several sources: the lower '
    'place, then the one that grants, then production, then the latest end, then what Apple says over a manual '
    'grant, then the newest check. So an expired production subscription does not hide a live sandbox one. '
    'valid_at null: now. A known_at that is null or not past stands for all that is known, because a standby''s '
    'clock may be behind what it knows. Swift has the same rule as EntitlementSource.precedes';
