-- Puts products into the catalog of app $1: $2 ids, $3 groups, $4 levels, $5 periods, $6 prices, $7 currencies.
INSERT INTO ledger.product (app_id, product_id, group_id, level, period, price_milliunits, currency)
SELECT $1::int, n.* FROM unnest($2::text[], $3::text[], $4::int[], $5::text[], $6::bigint[], $7::text[]) n
ON CONFLICT (app_id, product_id) DO UPDATE
SET group_id = EXCLUDED.group_id, level = EXCLUDED.level, period = EXCLUDED.period,
    price_milliunits = EXCLUDED.price_milliunits, currency = EXCLUDED.currency
