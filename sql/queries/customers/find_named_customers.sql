-- Customer: returns the customers behind names ($2) of app $1, with every name merged into theirs; is_head marks the
-- customer into whom the others were merged.
SELECT p.customer_id, p.name, p.merged_into IS NULL AS is_head, COALESCE(p.merged_into, p.customer_id) AS head_id
FROM ledger.customer p
WHERE p.app_id = $1::int AND COALESCE(p.merged_into, p.customer_id) IN (
    SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c
    WHERE c.app_id = $1::int AND c.name = ANY($2::text[]))
ORDER BY p.customer_id
