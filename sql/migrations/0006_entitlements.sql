-- What customers may use: the sources besides Apple, the read model, and the functions that every lookup goes through.

CREATE TABLE ledger.manual_grant (
    manual_grant_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id      bigint NOT NULL REFERENCES ledger.customer,
    entitlement      text NOT NULL,
    valid            tstzrange NOT NULL,
    known            tstzrange NOT NULL,
    given_by         text NOT NULL,
    reason           text NOT NULL,
    ended_by         text,
    end_reason       text,
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

CREATE TABLE ledger.grant_request (
    app_id           int NOT NULL REFERENCES ledger.app,
    request_key      text NOT NULL,
    request          bytea NOT NULL,
    manual_grant_id  bigint NOT NULL REFERENCES ledger.manual_grant ON DELETE CASCADE,
    asked_at         timestamptz NOT NULL,
    PRIMARY KEY (app_id, request_key),
    CONSTRAINT grant_request_key_is_short CHECK (request_key <> '' AND length(request_key) <= 255)
);
CREATE INDEX grant_request_asked_at ON ledger.grant_request (asked_at);
CREATE INDEX grant_request_of_grant ON ledger.grant_request (manual_grant_id);
COMMENT ON TABLE ledger.grant_request IS
    'The Idempotency-Keys of the last 24 hours and the manual grants that they made';
COMMENT ON COLUMN ledger.grant_request.request IS 'SHA-256 of what was asked: another request with the key is refused';

CREATE TABLE ledger.provisional (
    customer_id  bigint NOT NULL REFERENCES ledger.customer ON DELETE CASCADE,
    receipt_id   bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    product_id   text NOT NULL,
    stated_at    timestamptz NOT NULL,
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

CREATE FUNCTION ledger.extend_non_renewing(
    ends_at timestamptz, purchased_at timestamptz, duration interval, revoked_at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT GREATEST(
        ends_at,
        LEAST((GREATEST(purchased_at, ends_at) AT TIME ZONE 'UTC' + duration) AT TIME ZONE 'UTC', revoked_at))
$$;
COMMENT ON FUNCTION ledger.extend_non_renewing IS
    'When a non-renewing subscription that ran until ends_at (null: none did) ends after one more purchase, which may be '
    'refunded at revoked_at. In the calendar of UTC; the ends of months are clamped';

CREATE AGGREGATE ledger.non_renewing_end(timestamptz, interval, timestamptz)
    (SFUNC = ledger.extend_non_renewing, STYPE = timestamptz, PARALLEL = SAFE);
COMMENT ON AGGREGATE ledger.non_renewing_end(timestamptz, interval, timestamptz) IS
    'When a customer''s purchases of one non-renewing subscription end, over (purchased_at, duration, revoked_at) in '
    'the order of purchase';

CREATE TYPE ledger.entitlement_span AS (
    starts           timestamptz,
    ends             timestamptz,
    place            int,
    entitlement      text,
    granted          boolean,
    until            timestamptz,
    product_id       text,
    state            text,
    reason           text,
    environment      ledger.environment,
    basis            text,
    expires_at       timestamptz,
    subscription_id  bigint,
    purchase_id      bigint,
    manual_grant_id  bigint,
    ended_at         timestamptz
);
COMMENT ON TYPE ledger.entitlement_span IS
    'What one source says of one entitlement from starts until ends (half-open). place orders the sources: 1 what '
    'Apple or a running manual grant says, 2 provisional, 3 a manual grant that is over. until: the end of access if '
    'nothing changes; expires_at: Apple''s expiry where a subscription does not grant; ended_at: when access ended '
    'where it is not granted. The source is one of subscription, purchase and manual grant; none where it is provisional';

-- Each step is a set of all customers together, found from the step before by index. OFFSET 0 keeps the planner to
-- that: it takes "known at this instant" to be rare and would read the spans of all customers.
CREATE FUNCTION ledger.entitlement_spans(
    customer_ids bigint[], since timestamptz, catalog_at timestamptz, known_at timestamptz)
RETURNS TABLE (customer_id bigint, span ledger.entitlement_span)
LANGUAGE sql STABLE AS $$
    WITH owned AS MATERIALIZED (
        SELECT o.customer_id, o.subscription_id, o.purchase_id, COALESCE(lower(o.valid), '-infinity') AS owned_from,
               COALESCE(upper(o.valid), 'infinity') AS owned_until
        FROM ledger.ownership o
        WHERE o.customer_id = ANY(customer_ids) AND o.known @> known_at AND NOT o.valid << tstzrange(since, NULL)
    ), reported AS MATERIALIZED (
        SELECT o.customer_id, o.owned_from, o.owned_until, s.subscription_id, s.app_id, s.environment, s.expires_at,
               lower(c.valid) AS starts, COALESCE(upper(c.valid), 'infinity') AS ends, c.state, c.reason, c.entitled,
               c.product_id, c.allowed_until
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
            OFFSET 0) c
    ), bought AS MATERIALIZED (
        SELECT o.customer_id, o.owned_from, o.owned_until, p.purchase_id, p.app_id, p.environment, p.product_id,
               p.original_transaction_id, ledger.is_shared(p.facts #>> '{ownership,word}') AS is_shared, c.purchased_at,
               COALESCE(c.revoked_at, 'infinity') AS revoked_at,
               CASE WHEN EXISTS (
                   SELECT FROM ledger.product_terms t
                   WHERE t.app_id = p.app_id AND t.product_id = p.product_id AND t.duration IS NOT NULL)
               THEN c.quantity * ledger.non_renewing_duration(
                   p.app_id, p.product_id, p.first_recorded_at, catalog_at, known_at) END AS duration
        FROM owned o
        CROSS JOIN LATERAL (SELECT p.* FROM ledger.purchase p WHERE p.purchase_id = o.purchase_id OFFSET 0) p
        CROSS JOIN LATERAL (
            SELECT p.quantity, p.purchased_at, p.revoked_at
            WHERE COALESCE(p.facts_recorded_at, p.first_recorded_at) <= known_at
            UNION ALL
            SELECT h.quantity, h.purchased_at, h.revoked_at FROM ledger.purchase_history h
            WHERE h.purchase_id = p.purchase_id AND h.known @> known_at) c
    ), non_renewing AS MATERIALIZED (
        SELECT b.customer_id, b.purchase_id, ledger.non_renewing_end(b.purchased_at, b.duration, b.revoked_at) OVER (
            PARTITION BY b.customer_id, b.environment, b.product_id
            ORDER BY b.purchased_at, b.original_transaction_id COLLATE "C") AS ends_at
        FROM (SELECT DISTINCT ON (b.customer_id, b.purchase_id) b.* FROM bought b WHERE b.duration IS NOT NULL
              ORDER BY b.customer_id, b.purchase_id) b
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
        WHERE COALESCE(r.first_verified_at > known_at, true)
    ), product AS MATERIALIZED (
        SELECT p.app_id, p.product_id, g.entitlement, g.is_named
        FROM (SELECT r.app_id, r.product_id FROM reported r
              UNION SELECT b.app_id, b.product_id FROM bought b
              UNION SELECT s.app_id, s.product_id FROM stated s) p
        CROSS JOIN LATERAL ledger.grants(p.app_id, p.product_id, catalog_at, known_at) g
    ), given AS MATERIALIZED (
        -- The entitlements that each subscription ever gave, or will give, from the first time on.
        SELECT r.subscription_id, g.entitlement, min(r.starts) AS first_at
        FROM reported r JOIN product g USING (app_id, product_id)
        WHERE r.entitled
        GROUP BY r.subscription_id, g.entitlement
    ), outlook AS (
        SELECT t.* FROM (
            SELECT r.*, e.entitlement, e.first_at, g.entitlement IS NOT NULL AS gives,
                   max(CASE WHEN g.entitlement IS NULL THEN NULL WHEN r.entitled THEN r.ends ELSE r.allowed_until END)
                       OVER (PARTITION BY r.subscription_id, r.customer_id, r.owned_from, e.entitlement
                             ORDER BY r.starts) AS gave_until
            FROM reported r JOIN given e USING (subscription_id)
            LEFT JOIN product g
                ON g.app_id = r.app_id AND g.product_id = r.product_id AND g.entitlement = e.entitlement) t
        WHERE t.ends > GREATEST(since, t.first_at)
    ), numbered AS (
        -- A run is a stretch of one state that gives the entitlement; access changes where the next run begins.
        SELECT m.*, count(*) FILTER (WHERE m.begins_run) OVER (
            PARTITION BY m.subscription_id, m.customer_id, m.owned_from, m.entitlement ORDER BY m.starts) AS run
        FROM (
            SELECT o.*, NOT o.gives OR o.state IS DISTINCT FROM lag(o.state) OVER (
                PARTITION BY o.subscription_id, o.customer_id, o.owned_from, o.entitlement ORDER BY o.starts)
                AS begins_run
            FROM outlook o) m
    ), following AS (
        SELECT n.*, min(n.starts) OVER (
            PARTITION BY n.subscription_id, n.customer_id, n.owned_from, n.entitlement ORDER BY n.run
            RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS changes
        FROM numbered n
    ), source AS (
        -- A period without access splits where the outage allowance ends.
        SELECT o.customer_id, o.owned_from, o.owned_until, GREATEST(p.starts, o.first_at) AS starts, p.ends, 1 AS place,
               o.entitlement, granted,
               CASE WHEN granted THEN CASE WHEN p.allowed THEN o.allowed_until ELSE o.changes END END AS until,
               o.product_id, CASE WHEN p.allowed THEN 'awaiting_renewal' ELSE o.state::text END AS state,
               CASE WHEN p.allowed THEN 'renewal' ELSE o.reason::text END AS reason, o.environment,
               'verified' AS basis, CASE WHEN NOT granted THEN o.expires_at END AS expires_at, o.subscription_id,
               NULL::bigint AS purchase_id, NULL::bigint AS manual_grant_id,
               CASE WHEN NOT granted THEN o.gave_until END AS ended_at
        FROM following o
        CROSS JOIN LATERAL (
            SELECT o.starts, LEAST(o.ends, o.allowed_until) AS ends, true AS allowed WHERE o.allowed_until IS NOT NULL
            UNION ALL
            SELECT GREATEST(o.starts, o.allowed_until), o.ends, false) p
        CROSS JOIN LATERAL (SELECT o.gives AND (o.entitled OR p.allowed) AS granted) g
        UNION ALL
        SELECT b.customer_id, b.owned_from, b.owned_until, p.starts, p.ends, 1, g.entitlement, p.runs,
               CASE WHEN p.runs THEN n.ends_at END, b.product_id,
               CASE WHEN p.runs THEN 'active' WHEN b.revoked_at < 'infinity' THEN 'revoked' ELSE 'expired' END,
               -- Access that another customer bought ends without a refund.
               CASE WHEN p.runs THEN NULL
                    WHEN b.revoked_at < 'infinity' THEN CASE WHEN b.is_shared THEN 'family' ELSE 'refund' END
                    ELSE 'other' END,
               b.environment, 'verified', CASE WHEN NOT p.runs THEN n.ends_at END, NULL, b.purchase_id, NULL,
               CASE WHEN NOT p.runs THEN p.starts END
        FROM bought b JOIN product g ON g.app_id = b.app_id AND g.product_id = b.product_id AND g.is_named
        LEFT JOIN non_renewing n ON n.customer_id = b.customer_id AND n.purchase_id = b.purchase_id
        CROSS JOIN LATERAL (SELECT COALESCE(n.ends_at, b.revoked_at) AS ends_at) e
        CROSS JOIN LATERAL (VALUES
            (b.purchased_at, e.ends_at, true),
            (GREATEST(b.purchased_at, e.ends_at), 'infinity'::timestamptz, false)) p(starts, ends, runs)
        UNION ALL
        SELECT h.customer_id, '-infinity', 'infinity', p.starts, p.ends, CASE WHEN p.granted THEN 1 ELSE 3 END,
               h.entitlement, p.granted, CASE WHEN p.granted THEN upper(h.valid) END, NULL,
               CASE WHEN p.granted THEN 'active' ELSE 'expired' END, CASE WHEN NOT p.granted THEN 'other' END,
               'Production', 'by_hand', NULL, NULL, NULL, h.manual_grant_id, CASE WHEN NOT p.granted THEN p.starts END
        FROM (
            SELECT h.*, COALESCE(lead(lower(h.valid)) OVER (
                PARTITION BY h.customer_id, h.entitlement ORDER BY lower(h.valid)), 'infinity') AS next_at
            FROM ledger.manual_grant h
            WHERE h.customer_id = ANY(customer_ids) AND h.known @> known_at) h
        CROSS JOIN LATERAL (VALUES
            (lower(h.valid), COALESCE(upper(h.valid), 'infinity'), true),
            (COALESCE(upper(h.valid), 'infinity'), h.next_at, false)) p(starts, ends, granted)
        UNION ALL
        SELECT s.customer_id, '-infinity', 'infinity', p.starts, p.ends, 2, g.entitlement, p.runs,
               CASE WHEN p.runs THEN s.until END, s.product_id, CASE WHEN p.runs THEN 'active' ELSE 'expired' END,
               CASE WHEN NOT p.runs THEN 'unknown' END, s.environment, 'provisional', NULL, NULL, NULL, NULL,
               CASE WHEN NOT p.runs THEN p.starts END
        FROM stated s JOIN product g USING (app_id, product_id)
        CROSS JOIN LATERAL (VALUES (s.since, s.until, true), (s.until, 'infinity'::timestamptz, false)) p(starts, ends, runs)
    )
    SELECT s.customer_id,
           ROW(l.starts, l.ends, s.place, s.entitlement, s.granted, s.until, s.product_id, s.state, s.reason,
               s.environment, s.basis, s.expires_at, s.subscription_id, s.purchase_id,
               s.manual_grant_id, s.ended_at)::ledger.entitlement_span
    FROM source s
    CROSS JOIN LATERAL (
        SELECT GREATEST(s.starts, s.owned_from) AS starts, LEAST(s.ends, s.owned_until) AS ends) l
    WHERE l.ends > GREATEST(since, l.starts)
$$;
COMMENT ON FUNCTION ledger.entitlement_spans IS
    'Everything that gives, or gave, customers an entitlement, by the spans that end after since, with the catalog of '
    'catalog_at, as known at known_at (infinity: all that is known)';

-- Lookups read the stored spans in the form in which the server sends them: writing each field of each span costs a
-- lookup a third of its time in the database.
CREATE FUNCTION ledger.sent(spans ledger.entitlement_span[]) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$ BEGIN RETURN pg_catalog.array_send(spans); END $$;
COMMENT ON FUNCTION ledger.sent IS
    'An array of spans as the server sends it. It is immutable but for the numbers of types in it, which are not read';

-- A transaction that changes what customers may use computes their rows anew before it commits. A new catalog and an
-- import outdate rows, and a worker renews those; lookups compute what is outdated or missing.
CREATE TABLE ledger.current_entitlements (
    customer_id         bigint PRIMARY KEY REFERENCES ledger.customer ON DELETE CASCADE,
    app_id              int NOT NULL,
    catalog_changed_at  timestamptz NOT NULL,
    computed_at         timestamptz NOT NULL,
    spans               ledger.entitlement_span[] NOT NULL,
    subscriptions       bigint[] NOT NULL,
    purchases           bigint[] NOT NULL,
    sent                bytea GENERATED ALWAYS AS (ledger.sent(spans)) STORED
) WITH (fillfactor = 90);
ALTER TABLE ledger.current_entitlements ALTER COLUMN sent SET STORAGE MAIN;
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
COMMENT ON COLUMN ledger.current_entitlements.sent IS
    'spans as the server sends it, which lookups read. Where a row is large, spans is what leaves it first';

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
           COALESCE(array_agg(DISTINCT (s.span).purchase_id) FILTER (WHERE (s.span).purchase_id IS NOT NULL), '{}'),
           NULL::bytea
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
        SELECT c.customer_id, v.computed_at,
               CASE WHEN v.catalog_changed_at = a.catalog_changed_at AND v.subscriptions = l.subscriptions
                         AND v.purchases = l.purchases THEN v.spans END AS spans
        FROM ledger.customer c JOIN ledger.app a USING (app_id) LEFT JOIN ledger.current_entitlements v USING (customer_id)
        CROSS JOIN LATERAL (
            SELECT COALESCE(array_agg(DISTINCT s.subscription_id) FILTER (WHERE s.subscription_id IS NOT NULL), '{}')
                       AS subscriptions,
                   COALESCE(array_agg(DISTINCT s.purchase_id) FILTER (WHERE s.purchase_id IS NOT NULL), '{}') AS purchases
            FROM unnest(v.spans) s) l
        WHERE c.customer_id = ANY(customer_ids)
          AND CASE WHEN v.customer_id IS NULL THEN c.merged_into IS NULL
                   ELSE v.catalog_changed_at >= a.catalog_changed_at END
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
    SELECT d.customer_id, (d.span).entitlement, string_agg(t.fields, '; ' ORDER BY d.span) FILTER (WHERE d.is_stored),
           string_agg(t.fields, '; ' ORDER BY d.span) FILTER (WHERE NOT d.is_stored)
    FROM differing d
    CROSS JOIN LATERAL (
        SELECT string_agg(f.key || ' ' || f.value, ', ') AS fields
        FROM json_each_text(json_strip_nulls(row_to_json(d.span))) f WHERE f.key <> 'entitlement') t
    GROUP BY d.customer_id, (d.span).entitlement
$$;
COMMENT ON FUNCTION ledger.entitlement_differences IS
    'Customers and entitlements about which something else is stored than their sources give from now on, with the '
    'fields of the spans that only one of them has. Of a missing row, and of one whose sources are not those of its '
    'spans, nothing is stored; a merged name needs none. Leaves out what another catalog or an import outdated';

CREATE FUNCTION ledger.entitlement_sources(customer_ids bigint[], valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (customer_id bigint, source ledger.entitlement_span, as_of timestamptz, checked_at timestamptz)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_nestloop = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    stored bigint[] := '{}';
    computed bigint[];
BEGIN
    IF entitlement_sources.valid_at = now() AND entitlement_sources.known_at = 'infinity' THEN
        stored := ARRAY(
            SELECT v.customer_id FROM ledger.current_entitlements v JOIN ledger.app a USING (app_id)
            WHERE v.customer_id = ANY(customer_ids) AND v.catalog_changed_at = a.catalog_changed_at
              AND v.computed_at <= now() + interval '1 hour');
    END IF;
    -- A variable, for PostgreSQL plans a function anew in each call if one of its arguments is a query.
    computed := ARRAY(SELECT unnest(customer_ids) EXCEPT SELECT unnest(stored));
    RETURN QUERY
    WITH span AS MATERIALIZED (
        SELECT v.customer_id, s AS source, GREATEST(now(), v.computed_at) AS instant
        FROM ledger.current_entitlements v CROSS JOIN LATERAL unnest(v.spans) s
        WHERE v.customer_id = ANY(stored)
        UNION ALL
        SELECT e.customer_id, e.span, entitlement_sources.valid_at
        FROM ledger.entitlement_spans(
            computed, entitlement_sources.valid_at, entitlement_sources.valid_at, entitlement_sources.known_at) e
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
             s.basis COLLATE "C" DESC, s.state COLLATE "C", e.checked_at DESC, s.product_id COLLATE "C", s.subscription_id,
             s.purchase_id;
END
$$;
COMMENT ON FUNCTION ledger.entitlements IS
    'What customers may use, one row per customer and entitlement. The winner among several sources: the lower '
    'place, then the one that grants, then production, then the latest end, then what Apple says over a manual '
    'grant, then the state in the order of the alphabet (active before awaiting_renewal, which a period that moved to '
    'another subscription leaves behind), then the newest check. So an expired production subscription does not hide a '
    'live sandbox one. '
    'valid_at null: now. A known_at that is null or not past stands for all that is known, because a standby''s '
    'clock may be behind what it knows. Swift has the same rule as EntitlementSource.precedes';
