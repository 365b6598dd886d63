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
