-- Products of an app and the entitlements that they grant.

-- name: list_offers
-- Returns the promotional offers in the present catalog of app $1.
SELECT o.product_id, o.offer_id, o.audience, lower(o.valid) AS starts, upper(o.valid) AS ends, o.once
FROM ledger.product_offer o JOIN ledger.app a USING (app_id)
WHERE a.bundle_id = $1::text ORDER BY o.product_id COLLATE "C", o.offer_id COLLATE "C"

-- name: list_products
-- Returns the present catalog of app $1.
SELECT p.product_id, p.group_id, p.level, p.period, p.price_milliunits, p.currency, p.kind::text AS kind,
       p.credit, p.units, p.delivers_since, p.slot, p.slot_place,
       ARRAY(SELECT g.entitlement FROM ledger.catalog_grant g
             WHERE g.app_id = p.app_id AND g.product_id = p.product_id AND upper_inf(g.known) AND upper_inf(g.valid)
               AND g.entitlement <> ''
             ORDER BY g.entitlement COLLATE "C") AS entitlements
FROM ledger.product p JOIN ledger.app a USING (app_id)
WHERE a.bundle_id = $1::text ORDER BY p.product_id COLLATE "C"

-- name: lock_catalog
-- Locks the catalog of app $1, so that one catalog is applied at a time, and returns the app's key and the instant of
-- the last change.
SELECT app_id, catalog_changed_at FROM ledger.app WHERE bundle_id = $1::text FOR NO KEY UPDATE

-- name: insert_grants
-- Adds grants to app $1 ($2 products, $3 entitlements) at $4: without a start for a product never named before, else
-- from $4. Returns the grants.
INSERT INTO ledger.catalog_grant (app_id, product_id, entitlement, valid, known)
SELECT DISTINCT $1::int, n.product_id, n.entitlement,
       tstzrange(
           CASE WHEN EXISTS (
               SELECT FROM ledger.catalog_grant g WHERE g.app_id = $1::int AND g.product_id = n.product_id)
           THEN $4::timestamptz END, NULL),
       tstzrange($4::timestamptz, NULL)
FROM unnest($2::text[], $3::text[]) AS n(product_id, entitlement)
WHERE NOT EXISTS (
    SELECT FROM ledger.catalog_grant g
    WHERE g.app_id = $1::int AND g.product_id = n.product_id AND g.entitlement = n.entitlement
      AND upper_inf(g.known) AND upper_inf(g.valid))
RETURNING product_id, entitlement

-- name: end_grants
-- Ends grants of app $1 that are not among ($2 products, $3 entitlements) at $4: they stay true for the time before.
-- Returns those.
WITH ended AS (
    UPDATE ledger.catalog_grant g SET known = tstzrange(lower(g.known), $4::timestamptz)
    WHERE g.app_id = $1::int AND upper_inf(g.known) AND upper_inf(g.valid)
      AND NOT EXISTS (
        SELECT FROM unnest($2::text[], $3::text[]) AS n(product_id, entitlement)
        WHERE n.product_id = g.product_id AND n.entitlement = g.entitlement)
    RETURNING g.*
)
INSERT INTO ledger.catalog_grant (app_id, product_id, entitlement, valid, known)
SELECT app_id, product_id, entitlement, tstzrange(lower(valid), $4::timestamptz), tstzrange($4::timestamptz, NULL) FROM ended
RETURNING product_id, entitlement

-- name: record_terms
-- Records what the products of app $1 are from $2 on, where it differs from before: $3 ids, $4 kinds, $5 periods. A
-- product that is not named any more has no kind. Returns the products that differ.
WITH given AS MATERIALIZED (
    SELECT n.product_id, n.kind::ledger.product_kind AS kind,
           CASE WHEN n.kind = 'non_renewing' THEN n.period::interval END AS duration
    FROM unnest($3::text[], $4::text[], $5::text[]) AS n(product_id, kind, period)
), before AS MATERIALIZED (
    SELECT DISTINCT ON (t.product_id) t.product_id, t.kind, t.duration
    FROM ledger.product_terms t WHERE t.app_id = $1::int
    ORDER BY t.product_id, t.applied_at DESC
), differing AS MATERIALIZED (
    SELECT product_id, given.kind, given.duration
    FROM given FULL JOIN before USING (product_id)
    WHERE (given.kind, given.duration) IS DISTINCT FROM (before.kind, before.duration)
)
INSERT INTO ledger.product_terms (app_id, product_id, kind, duration, applied_at, delivers_since)
SELECT $1::int, d.product_id, d.kind, d.duration, $2::timestamptz,
       CASE WHEN d.kind IS NOT NULL THEN LEAST(
           $2::timestamptz,
           (SELECT min(t.delivers_since) FROM ledger.product_terms t
            WHERE t.app_id = $1::int AND t.product_id = d.product_id AND t.kind = d.kind),
           (SELECT min(p.first_recorded_at) - interval '1 day' FROM ledger.purchase p
            WHERE p.app_id = $1::int AND p.product_id = d.product_id
              AND NOT EXISTS (
                SELECT FROM ledger.catalog_grant g
                WHERE g.app_id = $1::int AND g.product_id = d.product_id AND lower(g.known) < $2::timestamptz))) END
FROM differing d
RETURNING product_id

-- name: change_catalog
-- Records that the grants of app $1 changed at $2, which outdates the stored entitlements of its customers.
UPDATE ledger.app SET catalog_changed_at = $2::timestamptz WHERE app_id = $1::int

-- name: delete_products
-- Deletes the products of app $1 that are not among $2 from the catalog.
DELETE FROM ledger.product WHERE app_id = $1::int AND product_id <> ALL ($2::text[])

-- name: upsert_products
-- Inserts or updates products in the catalog of app $1: $2 ids, $3 groups, $4 levels, $5 periods, $6 prices, $7
-- currencies, $8 kinds, $9 credits, $10 units, $11 starts of delivery, $12 slots, $13 places. A price is the default
-- storefront's. A product's first price applies from the beginning of time, a changed one from now on. A product
-- without a price has none from now on.
WITH given AS MATERIALIZED (
    SELECT n.product_id, n.group_id, n.level, n.period, n.price_milliunits, n.currency, n.kind::ledger.product_kind,
           n.credit, n.units, n.delivers_since, n.slot, n.slot_place
    FROM unnest(
        $2::text[], $3::text[], $4::int[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::int[],
        $11::timestamptz[], $12::text[], $13::int[])
        AS n(product_id, group_id, level, period, price_milliunits, currency, kind, credit, units, delivers_since, slot,
             slot_place)
), clock AS MATERIALIZED (
    SELECT clock_timestamp() AS at
), priced AS MATERIALIZED (
    SELECT ledger.record_price(
        $1::int, n.product_id, '',
        tstzrange(CASE WHEN EXISTS (
            SELECT FROM ledger.product_price p
            WHERE p.app_id = $1::int AND p.product_id = n.product_id AND p.storefront = '' AND upper_inf(p.known))
            THEN clock.at END, NULL),
        n.price_milliunits, n.currency, clock.at) AS stated
    FROM clock CROSS JOIN given n
    LEFT JOIN ledger.product_price p
        ON p.app_id = $1::int AND p.product_id = n.product_id AND p.storefront = '' AND upper_inf(p.known)
        AND p.valid @> clock.at
    WHERE (n.price_milliunits, n.currency) IS DISTINCT FROM (p.price_milliunits, p.currency)
)
INSERT INTO ledger.product AS product (
    app_id, product_id, group_id, level, period, price_milliunits, currency, kind, credit, units, delivers_since, slot,
    slot_place)
SELECT $1::int, n.* FROM given n
-- Refers to priced, so that PostgreSQL runs it.
WHERE (SELECT count(stated) FROM priced) >= 0
ON CONFLICT (app_id, product_id) DO UPDATE
SET group_id = EXCLUDED.group_id, level = EXCLUDED.level, period = EXCLUDED.period,
    price_milliunits = EXCLUDED.price_milliunits, currency = EXCLUDED.currency, kind = EXCLUDED.kind,
    credit = EXCLUDED.credit, units = EXCLUDED.units, delivers_since = EXCLUDED.delivers_since, slot = EXCLUDED.slot,
    slot_place = EXCLUDED.slot_place,
    units_since = CASE WHEN (product.credit, product.units) IS DISTINCT FROM (EXCLUDED.credit, EXCLUDED.units)
                       THEN EXCLUDED.units_since ELSE product.units_since END

-- name: replace_offers
-- Makes these the promotional offers of app $1: $2 products, $3 offers, $4 audiences separated by commas, $5 starts,
-- $6 ends, $7 whether only once.
WITH given AS MATERIALIZED (
    SELECT n.product_id, n.offer_id, string_to_array(n.audience, ',') AS audience, tstzrange(n.starts, n.ends) AS valid, n.once
    FROM unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::boolean[])
        AS n(product_id, offer_id, audience, starts, ends, once)
), deleted AS (
    DELETE FROM ledger.product_offer o
    WHERE o.app_id = $1::int
      AND NOT EXISTS (SELECT FROM given n WHERE n.product_id = o.product_id AND n.offer_id = o.offer_id)
)
INSERT INTO ledger.product_offer (app_id, product_id, offer_id, audience, valid, once)
SELECT $1::int, n.* FROM given n
ON CONFLICT (app_id, product_id, offer_id) DO UPDATE
SET audience = EXCLUDED.audience, valid = EXCLUDED.valid, once = EXCLUDED.once

-- name: known_entitlements
-- Returns what app $1 can grant: the entitlements in its catalog now, and its products, both those in the catalog and
-- those of the $2 subscriptions and purchases with the highest ids.
SELECT g.entitlement AS name
FROM ledger.app a JOIN ledger.catalog_grant g USING (app_id)
WHERE a.bundle_id = $1::text AND g.entitlement <> '' AND upper_inf(g.known) AND upper_inf(g.valid)
UNION
SELECT p.product_id FROM ledger.app a JOIN ledger.product p USING (app_id) WHERE a.bundle_id = $1::text
UNION
SELECT t.product_id
FROM ledger.app a
CROSS JOIN unnest(enum_range(NULL::ledger.environment)) AS e(environment)
CROSS JOIN LATERAL (
    SELECT s.subscription_id FROM ledger.subscription s
    WHERE s.app_id = a.app_id AND s.environment = e.environment
    ORDER BY s.original_transaction_id DESC LIMIT $2::int) s
JOIN ledger.subscription_span t ON t.subscription_id = s.subscription_id AND upper_inf(t.known)
WHERE a.bundle_id = $1::text
UNION
SELECT p.product_id
FROM ledger.app a
CROSS JOIN unnest(enum_range(NULL::ledger.environment)) AS e(environment)
CROSS JOIN LATERAL (
    SELECT p.product_id FROM ledger.purchase p
    WHERE p.app_id = a.app_id AND p.environment = e.environment
    ORDER BY p.original_transaction_id DESC LIMIT $2::int) p
WHERE a.bundle_id = $1::text
ORDER BY name
