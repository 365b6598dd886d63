-- Lookups of many customers at once, the feed's newest position, and merges that are undone.

-- The newest position is remembered for itself, so that none is given twice whatever becomes of the feed's rows.
ALTER TABLE ledger.feed
    ADD COLUMN position bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT feed_position_is_not_negative CHECK (position >= 0);
UPDATE ledger.feed SET position = (SELECT COALESCE(max(f.position), 0) FROM ledger.event_feed f);

CREATE OR REPLACE VIEW perennial.feed_now AS
SELECT f.feed_id, f.position,
       (SELECT count(*) FROM ledger.event_outbox) AS unsequenced,
       (SELECT min(e.recorded_at) FROM ledger.event_outbox o JOIN ledger.event e USING (event_id)) AS unsequenced_since
FROM ledger.feed f;

-- A merge can be undone: uploads know under which name they came, and things go back with their cause.
ALTER TABLE ledger.upload ADD COLUMN brought_by bigint REFERENCES ledger.customer;
COMMENT ON COLUMN ledger.upload.brought_by IS 'The customer whose upload it was before their name was merged; null: it moved never';
CREATE INDEX upload_brought_by ON ledger.upload (brought_by) WHERE brought_by IS NOT NULL;
ALTER TABLE ledger.ownership
    DROP CONSTRAINT ownership_cause_known,
    ADD CONSTRAINT ownership_cause_known
        CHECK (cause IN ('upload', 'import', 'token', 'merge', 'split', 'assignment'));
COMMENT ON COLUMN ledger.ownership.cause IS
    'Why they own it: an upload or import of theirs, the app_account_token in it, a merge, its undoing, or an assignment by hand';

-- Everything that gives, or gave, customers a right, with its place: of each right the first by (place, environment, granted
-- first, latest end, verified first, checked last) counts. What was given by hand counts like what Apple says, but once it
-- is over it says least of all. expires_at is Apple's expiry where a subscription does not grant it. known_at is 'infinity' for all that is known; of an answer that came later than known_at the
-- clocks are not told, for those it replaced are not kept.
-- Each step is a set for all customers together, found from the one before by index (OFFSET 0 keeps the planner to it: left
-- to itself it takes "known at this instant" for rare and reads everybody's spans).
CREATE FUNCTION ledger.right_source(customer_ids bigint[], valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    customer_id bigint, place int, entitlement text, granted boolean, until timestamptz, product_id text, state text,
    reason text, environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz,
    expires_at timestamptz, subscription_id bigint, purchase_id bigint, hand_grant_id bigint)
LANGUAGE sql STABLE AS $$
    WITH owned AS MATERIALIZED (
        SELECT o.customer_id, o.subscription_id, o.purchase_id FROM ledger.ownership o
        WHERE o.customer_id = ANY(customer_ids) AND o.valid @> valid_at AND o.known @> known_at
    ), span AS MATERIALIZED (
        SELECT o.customer_id, s.subscription_id, s.app_id, s.environment, s.as_of, s.checked_at, s.expires_at, told.valid,
               told.state, told.reason, told.entitled, told.product_id, told.held_until
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
            OFFSET 0) told
    ), bought AS MATERIALIZED (
        SELECT o.customer_id, p.purchase_id, p.app_id, p.environment, p.product_id, p.as_of, p.checked_at,
               COALESCE(told.revoked_at <= valid_at, false) AS revoked
        FROM owned o
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = o.purchase_id OFFSET 0) p
        CROSS JOIN LATERAL (
            SELECT p.purchased_at, p.revoked_at WHERE COALESCE(p.facts_recorded_at, p.first_recorded_at) <= known_at
            UNION ALL
            SELECT h.purchased_at, h.revoked_at FROM ledger.purchase_past h
            WHERE h.purchase_id = p.purchase_id AND h.known @> known_at) told
        WHERE told.purchased_at <= valid_at
    ), said AS MATERIALIZED (
        SELECT newest.*, r.app_id
        FROM (
            SELECT DISTINCT ON (p.customer_id, p.receipt_id, p.product_id) p.*
            FROM ledger.provisional p
            WHERE p.customer_id = ANY(customer_ids) AND p.said_at <= known_at
            ORDER BY p.customer_id, p.receipt_id, p.product_id, p.said_at DESC) newest
        CROSS JOIN LATERAL (
            SELECT r.app_id, r.first_verified_at FROM ledger.receipt r
            WHERE r.receipt_id = newest.receipt_id OFFSET 0) r
        WHERE newest.since <= valid_at AND COALESCE(r.first_verified_at > known_at, true)
    ), product AS MATERIALIZED (
        SELECT p.app_id, p.product_id, g.entitlement
        FROM (SELECT span.app_id, span.product_id FROM span
              UNION SELECT bought.app_id, bought.product_id FROM bought
              UNION SELECT said.app_id, said.product_id FROM said) p
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
           CASE WHEN granted THEN CASE WHEN held THEN s.held_until ELSE o.changes END END, s.product_id,
           CASE WHEN held THEN 'awaiting_renewal' ELSE s.state::text END,
           CASE WHEN held THEN 'renewal' ELSE s.reason::text END, s.environment, 'verified',
           CASE WHEN s.checked_at <= known_at THEN s.as_of END, CASE WHEN s.checked_at <= known_at THEN s.checked_at END,
           CASE WHEN NOT granted THEN s.expires_at END, s.subscription_id, NULL::bigint, NULL::bigint
    FROM outlook o JOIN span s USING (subscription_id)
    CROSS JOIN LATERAL (SELECT ledger.is_held(s.valid, s.held_until, valid_at) AS held) h
    CROSS JOIN LATERAL (SELECT o.given AND (s.entitled OR held) AS granted) g
    WHERE s.valid @> valid_at
    UNION ALL
    SELECT b.customer_id, 1, g.entitlement, NOT b.revoked, NULL, b.product_id,
           CASE WHEN b.revoked THEN 'revoked' ELSE 'active' END, CASE WHEN b.revoked THEN 'refund' END, b.environment,
           'verified',
           CASE WHEN b.checked_at <= known_at THEN b.as_of END, CASE WHEN b.checked_at <= known_at THEN b.checked_at END,
           NULL, NULL, b.purchase_id, NULL
    FROM bought b JOIN product g USING (app_id, product_id)
    UNION ALL
    SELECT h.customer_id, CASE WHEN granted THEN 1 ELSE 3 END, h.entitlement, granted,
           CASE WHEN granted THEN upper(h.valid) END, NULL, CASE WHEN granted THEN 'active' ELSE 'expired' END,
           CASE WHEN NOT granted THEN 'other' END, 'Production', 'by_hand', NULL, NULL, NULL, NULL, NULL, h.hand_grant_id
    FROM (
        SELECT DISTINCT ON (h.customer_id, h.entitlement) h.*
        FROM ledger.hand_grant h
        WHERE h.customer_id = ANY(customer_ids) AND h.known @> known_at AND lower(h.valid) <= valid_at
        ORDER BY h.customer_id, h.entitlement, lower(h.valid) DESC) h
    CROSS JOIN LATERAL (SELECT h.valid @> valid_at AS granted) g
    UNION ALL
    SELECT s.customer_id, 2, g.entitlement, runs, CASE WHEN runs THEN s.until END, s.product_id,
           CASE WHEN runs THEN 'active' ELSE 'expired' END, CASE WHEN NOT runs THEN 'unknown' END, s.environment,
           'provisional', NULL, NULL, NULL, NULL, NULL, NULL
    FROM said s JOIN product g USING (app_id, product_id)
    CROSS JOIN LATERAL (SELECT s.until > valid_at AS runs) r
$$;

-- What customers may use: one row per customer and entitlement, by the places above. valid_at null: now. An instant of
-- knowledge that is not past, or null, stands for all that is known: a standby's clock may be behind what it knows.
-- Runs as its owner, so that whoever may read the schema perennial needs no right on the ledger. In PL/pgSQL, because a
-- session then plans it once and not at every call. Rows that are in memory already are joined by hashes: the planner,
-- which does not know how many customers will be asked about, would go through all of them for each.
CREATE FUNCTION ledger.entitlements(customer_ids bigint[], valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    customer_id bigint, entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz, expires_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_nestloop = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    instant timestamptz := COALESCE(entitlements.valid_at, now());
    knowledge timestamptz := CASE WHEN entitlements.known_at < now() THEN entitlements.known_at ELSE 'infinity' END;
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
        e.checked_at, e.expires_at
    FROM unnest(customer_ids, who) AS n(asked, found)
    JOIN ledger.right_source(who, instant, knowledge) e ON e.customer_id = n.found
    ORDER BY n.asked, e.entitlement, e.place, e.environment, e.granted DESC, e.until DESC NULLS FIRST, e.basis DESC,
             e.checked_at DESC, e.product_id;
END
$$;

-- As before.
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
            ARRAY[c.customer_id], entitled_at.valid_at, entitled_at.known_at) x
        WHERE a.bundle_id = entitled_at.bundle_id AND x.entitlement = entitled_at.entitlement) e ON true;
END
$$;

CREATE OR REPLACE VIEW perennial.entitlement_now AS
SELECT a.bundle_id, e.environment::text AS environment, c.name AS customer, e.entitlement, e.granted, e.until,
       e.product_id, e.state, e.reason, e.basis, e.as_of, e.checked_at
FROM ledger.customer c
JOIN ledger.app a USING (app_id)
CROSS JOIN LATERAL ledger.entitlements(ARRAY[c.customer_id], NULL, NULL) e
WHERE c.merged_into IS NULL;

DROP FUNCTION ledger.entitlements(int, bigint, timestamptz, timestamptz);
DROP FUNCTION ledger.right_source(int, bigint, timestamptz, timestamptz);
DROP FUNCTION ledger.hand_source(bigint, timestamptz, timestamptz);
DROP FUNCTION ledger.provisional_source(int, bigint, timestamptz, timestamptz);
DROP FUNCTION ledger.entitlement_source(int, bigint, timestamptz, timestamptz);

-- Programs that looked up one customer at a time cannot any more.
UPDATE ledger.compatibility SET program_min = 20;
