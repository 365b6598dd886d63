-- Returns products that customers bought once and that the catalog does not name, or names without a kind: at most $1.
-- Jumps through the index from product to product, so that the cost does not depend on the number of purchases.
WITH RECURSIVE sold AS (
    SELECT first.* FROM ledger.app a
    CROSS JOIN LATERAL (
        SELECT p.app_id, p.product_id FROM ledger.purchase p WHERE p.app_id = a.app_id
        ORDER BY p.product_id LIMIT 1) first
    UNION ALL
    SELECT following.* FROM sold
    CROSS JOIN LATERAL (
        SELECT p.app_id, p.product_id FROM ledger.purchase p
        WHERE p.app_id = sold.app_id AND p.product_id > sold.product_id
        ORDER BY p.product_id LIMIT 1) following
)
SELECT a.bundle_id, s.product_id, p.product_id IS NOT NULL AS is_named
FROM sold s JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.product p USING (app_id, product_id)
WHERE p.kind IS NULL
LIMIT $1::int
