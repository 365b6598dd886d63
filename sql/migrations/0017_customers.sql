-- Customers: rights given by hand, names that became one customer, why an owner changed, and erasure.

-- A right given by hand: valid is when it applies, known is when we said so. A row is closed and said again, never changed.
CREATE TABLE ledger.hand_grant (
    hand_grant_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id    bigint NOT NULL REFERENCES ledger.customer,
    entitlement    text NOT NULL,
    valid          tstzrange NOT NULL,
    known          tstzrange NOT NULL,
    given_by       text NOT NULL,
    reason         text NOT NULL,
    ended_by       text,
    end_reason     text,
    CONSTRAINT hand_grant_entitlement_is_short CHECK (entitlement <> '' AND length(entitlement) <= 255),
    CONSTRAINT hand_grant_says_who_and_why CHECK
        (given_by <> '' AND length(given_by) <= 255 AND reason <> '' AND length(reason) <= 1000
         AND (ended_by IS NULL) = (end_reason IS NULL)),
    CONSTRAINT hand_grant_is_not_empty CHECK (NOT isempty(valid) AND NOT isempty(known)),
    CONSTRAINT hand_grant_says_one_thing EXCLUDE USING gist
        (customer_id WITH =, entitlement WITH =, valid WITH &&, known WITH &&)
);
CREATE INDEX hand_grant_of_customer ON ledger.hand_grant (customer_id);

-- merged_into: whose name it is now. That one has no other name's customer behind it.
ALTER TABLE ledger.customer
    ADD COLUMN merged_into bigint REFERENCES ledger.customer,
    ADD COLUMN erased_at timestamptz,
    ADD CONSTRAINT customer_is_not_merged_into_itself CHECK (merged_into <> customer_id);
CREATE INDEX customer_merged_into ON ledger.customer (merged_into) WHERE merged_into IS NOT NULL;

-- From when a name was another customer's name: before, it had things of its own.
CREATE TABLE ledger.customer_merge (
    customer_id  bigint NOT NULL REFERENCES ledger.customer,
    into_id      bigint NOT NULL REFERENCES ledger.customer,
    applies      tstzrange NOT NULL,
    CONSTRAINT customer_merge_says_one_thing EXCLUDE USING gist (customer_id WITH =, applies WITH &&)
);

-- Null: not known, for it was long ago.
ALTER TABLE ledger.ownership
    ADD COLUMN cause text,
    ADD CONSTRAINT ownership_cause_known CHECK (cause IN ('upload', 'import', 'token', 'merge', 'assignment'));
COMMENT ON COLUMN ledger.ownership.cause IS
    'Why they own it: an upload or import of theirs, the app_account_token in it, a merge, or an assignment by hand';

ALTER TABLE ledger.receipt ADD COLUMN erased_at timestamptz;
COMMENT ON COLUMN ledger.receipt.erased_at IS 'When its bytes were erased; the row stays for what was said with it';

-- A word that ends first is found first.
CREATE INDEX provisional_until ON ledger.provisional (until);

-- Whose things a customer's name stood for at an instant.
CREATE FUNCTION ledger.customer_at(customer_id bigint, at timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT COALESCE(
        (SELECT m.into_id FROM ledger.customer_merge m
         WHERE m.customer_id = customer_at.customer_id AND m.applies @> customer_at.at),
        customer_at.customer_id)
$$;

-- As before, with two changes. What was known of a one-time purchase is what was known then, also of a refund that was
-- reversed since. And each step starts from the one before (OFFSET 0): left to itself the planner takes "known at this
-- instant" for rare and reads everybody's spans.
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

-- What was given by hand: of each right the newest that had begun.
CREATE FUNCTION ledger.hand_source(customer_id bigint, valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (entitlement text, granted boolean, until timestamptz, hand_grant_id bigint)
LANGUAGE sql STABLE AS $$
    SELECT DISTINCT ON (h.entitlement) h.entitlement, h.valid @> valid_at, upper(h.valid), h.hand_grant_id
    FROM ledger.hand_grant h
    WHERE h.customer_id = hand_source.customer_id AND h.known @> known_at AND lower(h.valid) <= valid_at
    ORDER BY h.entitlement, lower(h.valid) DESC
$$;

-- Everything that gives, or gave, a customer a right, with its place: of each right the first by (place, environment,
-- granted first, latest end, verified first, checked last) counts. What was given by hand counts like what Apple says, but
-- once it is over it says least of all.
CREATE FUNCTION ledger.right_source(app_id int, customer_id bigint, valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    place int, entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz, subscription_id bigint,
    purchase_id bigint, hand_grant_id bigint)
LANGUAGE sql STABLE AS $$
    SELECT 1, s.entitlement, s.granted, CASE WHEN s.granted THEN s.until END, s.product_id, s.state, s.reason, s.environment,
           'verified', s.as_of, s.checked_at, s.subscription_id, s.purchase_id, NULL::bigint
    FROM ledger.entitlement_source(app_id, customer_id, valid_at, known_at) s
    UNION ALL
    SELECT CASE WHEN h.granted THEN 1 ELSE 3 END, h.entitlement, h.granted, CASE WHEN h.granted THEN h.until END, NULL,
           CASE WHEN h.granted THEN 'active' ELSE 'expired' END, CASE WHEN NOT h.granted THEN 'other' END, 'Production',
           'by_hand', NULL, NULL, NULL, NULL, h.hand_grant_id
    FROM ledger.hand_source(customer_id, valid_at, known_at) h
    UNION ALL
    SELECT 2, p.entitlement, p.granted, CASE WHEN p.granted THEN p.until END, p.product_id, p.state, p.reason, p.environment,
           'provisional', NULL, NULL, NULL, NULL, NULL
    FROM ledger.provisional_source(app_id, customer_id, valid_at, known_at) p
$$;

-- One row per entitlement, by the places above. Runs as its owner, so that whoever may read the schema perennial needs no
-- right on the ledger. In PL/pgSQL, because a session then plans it once and not at every call.
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

-- As before, planned once a session.
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

-- A name that is another customer's now is told under that one.
CREATE OR REPLACE VIEW perennial.entitlement_now AS
SELECT a.bundle_id, e.environment::text AS environment, c.name AS customer, e.entitlement, e.granted, e.until,
       e.product_id, e.state, e.reason, e.basis, e.as_of, e.checked_at
FROM ledger.customer c
JOIN ledger.app a USING (app_id)
CROSS JOIN LATERAL ledger.entitlements(c.app_id, c.customer_id, now(), now()) e
WHERE c.merged_into IS NULL;

-- Rights given by hand with who gave and ended them, and what was said of them when.
CREATE VIEW perennial.hand_grant_log AS
SELECT a.bundle_id, c.name AS customer, h.entitlement, lower(h.valid) AS valid_from,
       COALESCE(upper(h.valid), 'infinity') AS valid_until, h.given_by, h.reason, h.ended_by, h.end_reason,
       lower(h.known) AS known_from, upper(h.known) AS known_until
FROM ledger.hand_grant h
JOIN ledger.customer c USING (customer_id)
JOIN ledger.app a USING (app_id);

-- As before, with why.
CREATE OR REPLACE VIEW perennial.ownership_log AS
SELECT a.bundle_id, COALESCE(s.environment, p.environment)::text AS environment,
       CASE WHEN s.subscription_id IS NULL THEN 'purchase' ELSE 'subscription' END AS kind,
       COALESCE(s.subscription_id, p.purchase_id) AS stream_id,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id, c.name AS customer,
       COALESCE(lower(o.valid), '-infinity') AS valid_from, COALESCE(upper(o.valid), 'infinity') AS valid_until,
       lower(o.known) AS known_from, upper(o.known) AS known_until, o.cause
FROM ledger.ownership o
JOIN ledger.customer c USING (customer_id)
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id);
