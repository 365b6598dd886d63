-- Which receipts hold which one-time purchases, what a rebuild corrected, and what stands behind each right.
CREATE TABLE ledger.receipt_purchase (
    receipt_id   bigint NOT NULL REFERENCES ledger.receipt ON DELETE CASCADE,
    purchase_id  bigint NOT NULL REFERENCES ledger.purchase ON DELETE CASCADE,
    PRIMARY KEY (purchase_id, receipt_id)
);
-- What was settled before: receipts of the owners. One that does not hold the purchase after all costs a look, no more.
INSERT INTO ledger.receipt_purchase (receipt_id, purchase_id)
SELECT DISTINCT u.receipt_id, o.purchase_id
FROM ledger.ownership o
JOIN ledger.upload u USING (customer_id)
JOIN ledger.receipt r USING (receipt_id)
WHERE o.purchase_id IS NOT NULL AND r.verified_at IS NOT NULL;

-- A correction is a version of its own without events: nothing happened at Apple. Each row is one fact that was stored
-- otherwise than the observations say.
CREATE TABLE ledger.correction (
    correction_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id  bigint REFERENCES ledger.subscription ON DELETE CASCADE,
    purchase_id      bigint REFERENCES ledger.purchase ON DELETE CASCADE,
    version          bigint NOT NULL,
    fact             text NOT NULL,
    stored           text,
    rebuilt          text,
    recorded_at      timestamptz NOT NULL,
    CONSTRAINT correction_of_one_thing CHECK (num_nonnulls(subscription_id, purchase_id) = 1),
    CONSTRAINT correction_changes_something CHECK (stored IS DISTINCT FROM rebuilt)
);
CREATE INDEX correction_of_subscription ON ledger.correction (subscription_id);
CREATE INDEX correction_of_purchase ON ledger.correction (purchase_id);

-- Everything the customer owned at valid_at that grants, or once granted, something; new is which subscription or purchase.
DROP FUNCTION ledger.entitlement_source(int, bigint, timestamptz, timestamptz);
CREATE FUNCTION ledger.entitlement_source(
    app_id int, customer_id bigint, valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, as_of timestamptz, checked_at timestamptz, subscription_id bigint, purchase_id bigint)
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
           s.environment, s.as_of, s.checked_at, s.subscription_id, NULL::bigint
    FROM ledger.ownership o
    JOIN ledger.subscription s ON s.subscription_id = o.subscription_id
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
           p.environment, p.as_of, p.checked_at, NULL, p.purchase_id
    FROM ledger.ownership o
    JOIN ledger.purchase p ON p.purchase_id = o.purchase_id
    CROSS JOIN LATERAL (
        SELECT COALESCE(p.revoked_at <= valid_at AND p.revocation_recorded_at <= known_at, false) AS revoked) r
    CROSS JOIN LATERAL ledger.grants(p.app_id, p.product_id, valid_at, known_at) g
    WHERE o.customer_id = entitlement_source.customer_id AND p.app_id = entitlement_source.app_id
      AND o.valid @> valid_at AND o.known @> known_at
      AND p.purchased_at <= valid_at AND p.first_recorded_at <= known_at
$$;

-- The same as before over these rows.
CREATE OR REPLACE FUNCTION ledger.entitlements(
    app_id int, customer_id bigint, valid_at timestamptz, known_at timestamptz)
RETURNS TABLE (
    entitlement text, granted boolean, until timestamptz, product_id text, state text, reason text,
    environment ledger.environment, basis text, as_of timestamptz, checked_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT ON (e.entitlement)
        e.entitlement, e.granted, CASE WHEN e.granted THEN e.until END, e.product_id, e.state, e.reason, e.environment,
        CASE WHEN e.is_verified THEN 'verified' ELSE 'provisional' END, e.as_of, e.checked_at
    FROM (
        SELECT true AS is_verified, s.* FROM ledger.entitlement_source(app_id, customer_id, valid_at, known_at) s
        UNION ALL
        SELECT false, s.*, NULL, NULL, NULL, NULL
        FROM ledger.provisional_source(app_id, customer_id, valid_at, known_at) s) e
    ORDER BY e.entitlement, e.is_verified DESC, e.environment, e.granted DESC, e.until DESC NULLS FIRST,
             e.checked_at DESC, e.product_id
$$;
