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
