-- What customers may use: the sources besides Apple, and the functions that every lookup goes through.
CREATE TABLE ledger.manual_grant (
    manual_grant_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id    bigint NOT NULL REFERENCES ledger.customer,
    entitlement    text NOT NULL,
    valid          tstzrange NOT NULL,
    known          tstzrange NOT NULL,
    given_by       text NOT NULL,
    reason         text NOT NULL,
    ended_by       text,
    end_reason     text,
    CONSTRAINT manual_grant_entitlement_is_short CHECK (entitlement <> '' AND length(entitlement) <= 255),
    CONSTRAINT manual_grant_says_who_and_why CHECK
        (given_by <> '' AND length(given_by) <= 255 AND reason <> '' AND length(reason) <= 1000
         AND (ended_by IS NULL) = (end_reason IS NULL)),
    CONSTRAINT manual_grant_is_not_empty CHECK (NOT isempty(valid) AND NOT isempty(known)),
    CONSTRAINT manual_grant_says_one_thing EXCLUDE USING gist
        (customer_id WITH =, entitlement WITH =, valid WITH &&, known WITH &&)
);
CREATE INDEX manual_grant_of_customer ON ledger.manual_grant (customer_id);
COMMENT ON TABLE ledger.manual_grant IS
    'Manual grants: entitlements that an operator gave. A change closes known and adds a row';
COMMENT ON COLUMN ledger.manual_grant.valid IS 'When the grant applies; half-open';
COMMENT ON COLUMN ledger.manual_grant.known IS 'When Perennial recorded it, by our clock; half-open';

CREATE TABLE ledger.provisional (
    customer_id  bigint NOT NULL REFERENCES ledger.customer ON DELETE CASCADE,
    receipt_id   bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    product_id   text NOT NULL,
    stated_at      timestamptz NOT NULL,
    since        timestamptz NOT NULL,
    until        timestamptz NOT NULL,
    environment  ledger.environment NOT NULL,
    PRIMARY KEY (customer_id, receipt_id, product_id, stated_at),
    CONSTRAINT provisional_product_is_short CHECK (product_id <> '' AND length(product_id) <= 255),
    CONSTRAINT provisional_is_for_90_days
        CHECK (since <= stated_at AND until BETWEEN since AND since + interval '90 days')
);
CREATE INDEX provisional_of_receipt ON ledger.provisional (receipt_id);
CREATE INDEX provisional_until ON ledger.provisional (until);
COMMENT ON TABLE ledger.provisional IS
    'What the operator says a customer has until Apple is asked about the receipt. Rows are only added: the newest '
    'of a customer, receipt and product counts';
COMMENT ON COLUMN ledger.provisional.stated_at IS 'When the import came, by our clock';
COMMENT ON COLUMN ledger.provisional.since IS 'When an import brought it first; the 90 days begin then';

-- Each step is a set of all customers together, found from the step before by index. OFFSET 0 keeps the planner to
-- that: it takes "known at this instant" to be rare and would read the spans of all customers. A clock that is later
-- than known_at is null, because the clocks that it replaced are not kept.
CREATE FUNCTION ledger.right_source(customer_ids bigint[], valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    customer_id bigint, place int, entitlement text, granted boolean, until timestamptz, product_id text, state text,
    reason text, environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz,
    expires_at timestamptz, subscription_id bigint, purchase_id bigint, manual_grant_id bigint)
LANGUAGE sql STABLE AS $$
    WITH owned AS MATERIALIZED (
        SELECT o.customer_id, o.subscription_id, o.purchase_id FROM ledger.ownership o
        WHERE o.customer_id = ANY(customer_ids) AND o.valid @> valid_at AND o.known @> known_at
    ), span AS MATERIALIZED (
        SELECT o.customer_id, s.subscription_id, s.app_id, s.environment, s.as_of, s.checked_at, s.expires_at,
               reported.valid, reported.state, reported.reason, reported.entitled, reported.product_id, reported.allowed_until
        FROM owned o
        CROSS JOIN LATERAL (
            SELECT s.* FROM ledger.subscription s WHERE s.subscription_id = o.subscription_id OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT c.* FROM ledger.subscription_span c
            WHERE c.subscription_id = o.subscription_id AND upper_inf(c.known) AND lower(c.known) <= known_at
            UNION ALL
            SELECT c.* FROM ledger.subscription_span c
            WHERE c.subscription_id = o.subscription_id AND NOT upper_inf(c.known) AND c.known @> known_at
              AND known_at < 'infinity'
            OFFSET 0) reported
    ), bought AS MATERIALIZED (
        SELECT o.customer_id, p.purchase_id, p.app_id, p.environment, p.product_id, p.as_of, p.checked_at,
               COALESCE(reported.revoked_at <= valid_at, false) AS revoked
        FROM owned o
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = o.purchase_id OFFSET 0) p
        CROSS JOIN LATERAL (
            SELECT p.purchased_at, p.revoked_at WHERE COALESCE(p.facts_recorded_at, p.first_recorded_at) <= known_at
            UNION ALL
            SELECT h.purchased_at, h.revoked_at FROM ledger.purchase_history h
            WHERE h.purchase_id = p.purchase_id AND h.known @> known_at) reported
        WHERE reported.purchased_at <= valid_at
    ), stated AS MATERIALIZED (
        SELECT newest.*, r.app_id
        FROM (
            SELECT DISTINCT ON (p.customer_id, p.receipt_id, p.product_id) p.*
            FROM ledger.provisional p
            WHERE p.customer_id = ANY(customer_ids) AND p.stated_at <= known_at
            ORDER BY p.customer_id, p.receipt_id, p.product_id, p.stated_at DESC) newest
        CROSS JOIN LATERAL (
            SELECT r.app_id, r.first_verified_at FROM ledger.receipt r
            WHERE r.receipt_id = newest.receipt_id OFFSET 0) r
        WHERE newest.since <= valid_at AND COALESCE(r.first_verified_at > known_at, true)
    ), product AS MATERIALIZED (
        SELECT p.app_id, p.product_id, g.entitlement
        FROM (SELECT span.app_id, span.product_id FROM span
              UNION SELECT bought.app_id, bought.product_id FROM bought
              UNION SELECT stated.app_id, stated.product_id FROM stated) p
        CROSS JOIN LATERAL ledger.grants(p.app_id, p.product_id, valid_at, known_at) g
    ), past AS MATERIALIZED (
        SELECT DISTINCT s.subscription_id, g.entitlement
        FROM span s JOIN product g USING (app_id, product_id)
        WHERE s.entitled AND lower(s.valid) <= valid_at
    ), outlook AS (
        SELECT s.subscription_id, p.entitlement, bool_or(s.valid @> valid_at AND g.entitlement IS NOT NULL) AS given,
               min(lower(s.valid)) FILTER (
                   WHERE lower(s.valid) > valid_at AND (g.entitlement IS NULL OR s.state <> s.current_state)) AS changes
        FROM (
            SELECT span.*, max(span.state) FILTER (WHERE span.valid @> valid_at)
                OVER (PARTITION BY span.subscription_id) AS current_state
            FROM span) s
        JOIN past p USING (subscription_id)
        LEFT JOIN product g
            ON g.app_id = s.app_id AND g.product_id = s.product_id AND g.entitlement = p.entitlement
        GROUP BY s.subscription_id, p.entitlement
    )
    SELECT s.customer_id, 1, o.entitlement, granted,
           CASE WHEN granted THEN CASE WHEN allowed THEN s.allowed_until ELSE o.changes END END, s.product_id,
           CASE WHEN allowed THEN 'awaiting_renewal' ELSE s.state::text END,
           CASE WHEN allowed THEN 'renewal' ELSE s.reason::text END, s.environment, 'verified',
           CASE WHEN s.checked_at <= known_at THEN s.as_of END,
           CASE WHEN s.checked_at <= known_at THEN s.checked_at END,
           CASE WHEN NOT granted THEN s.expires_at END, s.subscription_id, NULL::bigint, NULL::bigint
    FROM outlook o JOIN span s USING (subscription_id)
    CROSS JOIN LATERAL (SELECT ledger.is_in_outage_allowance(s.valid, s.allowed_until, valid_at) AS allowed) h
    CROSS JOIN LATERAL (SELECT o.given AND (s.entitled OR allowed) AS granted) g
    WHERE s.valid @> valid_at
    UNION ALL
    SELECT b.customer_id, 1, g.entitlement, NOT b.revoked, NULL, b.product_id,
           CASE WHEN b.revoked THEN 'revoked' ELSE 'active' END, CASE WHEN b.revoked THEN 'refund' END, b.environment,
           'verified',
           CASE WHEN b.checked_at <= known_at THEN b.as_of END,
           CASE WHEN b.checked_at <= known_at THEN b.checked_at END,
           NULL, NULL, b.purchase_id, NULL
    FROM bought b JOIN product g USING (app_id, product_id)
    UNION ALL
    SELECT h.customer_id, CASE WHEN granted THEN 1 ELSE 3 END, h.entitlement, granted,
           CASE WHEN granted THEN upper(h.valid) END, NULL, CASE WHEN granted THEN 'active' ELSE 'expired' END,
           CASE WHEN NOT granted THEN 'other' END, 'Production', 'by_hand', NULL, NULL, NULL, NULL, NULL,
           h.manual_grant_id
    FROM (
        SELECT DISTINCT ON (h.customer_id, h.entitlement) h.*
        FROM ledger.manual_grant h
        WHERE h.customer_id = ANY(customer_ids) AND h.known @> known_at AND lower(h.valid) <= valid_at
        ORDER BY h.customer_id, h.entitlement, lower(h.valid) DESC) h
    CROSS JOIN LATERAL (SELECT h.valid @> valid_at AS granted) g
    UNION ALL
    SELECT s.customer_id, 2, g.entitlement, runs, CASE WHEN runs THEN s.until END, s.product_id,
           CASE WHEN runs THEN 'active' ELSE 'expired' END, CASE WHEN NOT runs THEN 'unknown' END, s.environment,
           'provisional', NULL, NULL, NULL, NULL, NULL, NULL
    FROM stated s JOIN product g USING (app_id, product_id)
    CROSS JOIN LATERAL (SELECT s.until > valid_at AS runs) r
$$;
COMMENT ON FUNCTION ledger.right_source IS
    'Every source that gives, or gave, customers an entitlement at valid_at as known at known_at (infinity: all '
    'that is known). place orders the sources: 1 what Apple or a running manual grant says, 2 provisional, 3 a '
    'manual grant that is over. expires_at is Apple''s expiry where a subscription does not grant';

-- The function runs as its owner, so that readers of the schema perennial need no privilege on the ledger. It is
-- PL/pgSQL, because a session then plans it once and not at every call. It joins by hashes: the planner does not know
-- how many customers a call names, and would otherwise go through all rows in memory once per customer.
CREATE FUNCTION ledger.entitlement_sources(customer_ids bigint[], valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    customer_id bigint, entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz, expires_at timestamptz,
    subscription_id bigint, purchase_id bigint, is_tied boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_nestloop = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    instant timestamptz := COALESCE(entitlement_sources.valid_at, now());
    knowledge timestamptz :=
        CASE WHEN entitlement_sources.known_at < now() THEN entitlement_sources.known_at ELSE 'infinity' END;
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
REVOKE EXECUTE ON FUNCTION ledger.entitlement_sources(bigint[], timestamptz, timestamptz) FROM PUBLIC;
COMMENT ON FUNCTION ledger.entitlement_sources IS
    'What customers may use, one row per customer and entitlement. The winner among several sources: the lower '
    'place, then the one that grants, then production, then the latest end, then what Apple says over a grant by '
    'hand, then the newest check. So an expired production subscription does not hide a live sandbox one. '
    'subscription_id and purchase_id name the winner; is_tied: another source differs in clocks alone, so a check '
    'may make that one the winner. valid_at null: now. A known_at that is null or not past stands for all that is '
    'known, because a standby''s clock may be behind what it knows';

CREATE FUNCTION ledger.entitlements(customer_ids bigint[], valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    customer_id bigint, entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz, expires_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.customer_id, s.entitlement, s.granted, s.until, s.product_id, s.state, s.reason, s.environment, s.basis,
           s.as_of, s.checked_at, s.expires_at
    FROM ledger.entitlement_sources(entitlements.customer_ids, entitlements.valid_at, entitlements.known_at) s;
END
$$;
COMMENT ON FUNCTION ledger.entitlements IS
    'What customers may use, one row per customer and entitlement: ledger.entitlement_sources without the sources';
