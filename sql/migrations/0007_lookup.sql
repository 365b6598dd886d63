-- What a customer may use at one instant as known at another: the functions every lookup goes through.

-- Held: access goes on although its end has passed, because Apple was not asked since. Swift: `StoredSpan.isHeld(at:)`.
CREATE FUNCTION ledger.is_held(valid tstzrange, held_until timestamptz, at timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT COALESCE(at >= lower(valid) AND at < held_until, false)
$$;

-- A product that no catalog names grants one entitlement with the product's own id.
CREATE FUNCTION ledger.grants(app_id int, product_id text, valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (entitlement text)
LANGUAGE sql STABLE AS $$
    SELECT g.entitlement FROM ledger.catalog_grant g
    WHERE g.app_id = grants.app_id AND g.product_id = grants.product_id AND g.valid @> valid_at AND g.known @> known_at
      AND g.entitlement <> ''
    UNION ALL
    SELECT grants.product_id
    WHERE NOT EXISTS (
        SELECT FROM ledger.catalog_grant g
        WHERE g.app_id = grants.app_id AND g.product_id = grants.product_id AND g.entitlement = ''
          AND g.valid @> valid_at AND g.known @> known_at)
$$;

-- Everything the customer owned at valid_at that grants, or once granted, something.
CREATE FUNCTION ledger.entitlement_source(
    app_id int, customer_id bigint, valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, as_of timestamptz, checked_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT past.entitlement,
           (current.entitled OR held)
               AND past.entitlement IN (SELECT g.entitlement FROM ledger.grants(s.app_id, current.product_id, valid_at, known_at) g),
           CASE WHEN held THEN current.held_until
                WHEN current.entitled THEN (
                    SELECT min(lower(later.valid)) FROM ledger.subscription_span later
                    WHERE later.subscription_id = s.subscription_id AND later.known @> known_at
                      AND lower(later.valid) > valid_at
                      AND NOT (later.state = current.state AND past.entitlement IN (
                          SELECT g.entitlement FROM ledger.grants(s.app_id, later.product_id, valid_at, known_at) g)))
                END,
           current.product_id,
           CASE WHEN held THEN 'awaiting_renewal' ELSE current.state::text END,
           CASE WHEN held THEN 'renewal' ELSE current.reason::text END,
           s.environment, s.as_of, s.checked_at
    FROM ledger.ownership o
    JOIN ledger.subscription s USING (subscription_id)
    JOIN ledger.subscription_span current
        ON current.subscription_id = s.subscription_id AND current.valid @> valid_at AND current.known @> known_at
    CROSS JOIN LATERAL ledger.is_held(current.valid, current.held_until, valid_at) held
    CROSS JOIN LATERAL (
        SELECT DISTINCT g.entitlement
        FROM ledger.subscription_span earlier
        CROSS JOIN LATERAL ledger.grants(s.app_id, earlier.product_id, valid_at, known_at) g
        WHERE earlier.subscription_id = s.subscription_id AND earlier.known @> known_at AND earlier.entitled
          AND lower(earlier.valid) <= valid_at) past
    WHERE o.customer_id = entitlement_source.customer_id AND s.app_id = entitlement_source.app_id
      AND o.valid @> valid_at AND o.known @> known_at
    UNION ALL
    SELECT g.entitlement,
           NOT revoked, NULL, p.product_id,
           CASE WHEN revoked THEN 'revoked' ELSE 'active' END,
           CASE WHEN revoked THEN 'refund' END,
           p.environment, p.as_of, p.checked_at
    FROM ledger.ownership o
    JOIN ledger.purchase p USING (purchase_id)
    CROSS JOIN LATERAL (
        SELECT COALESCE(p.revoked_at <= valid_at AND p.revocation_recorded_at <= known_at, false) AS revoked) r
    CROSS JOIN LATERAL ledger.grants(p.app_id, p.product_id, valid_at, known_at) g
    WHERE o.customer_id = entitlement_source.customer_id AND p.app_id = entitlement_source.app_id
      AND o.valid @> valid_at AND o.known @> known_at
      AND p.purchased_at <= valid_at AND p.first_recorded_at <= known_at
$$;

-- One row per entitlement: production beats sandbox, what grants beats what does not, the latest end wins.
-- Runs as its owner, so that whoever may read the schema perennial needs no right on the ledger.
CREATE FUNCTION ledger.entitlements(app_id int, customer_id bigint, valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT ON (e.entitlement)
        e.entitlement, e.granted, CASE WHEN e.granted THEN e.until END, e.product_id, e.state, e.reason, e.environment,
        'verified', e.as_of, e.checked_at
    FROM ledger.entitlement_source(app_id, customer_id, valid_at, known_at) e
    ORDER BY e.entitlement, e.environment, e.granted DESC, e.until DESC NULLS FIRST, e.checked_at DESC, e.product_id
$$;
