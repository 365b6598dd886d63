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
