-- List: returns the customers of app $1 after the name $2 whose names begin with $3, in the order of their bytes, at most
-- $4.
SELECT c.name, head.name AS merged_into, c.created_at
FROM ledger.customer c LEFT JOIN ledger.customer head ON head.customer_id = c.merged_into
WHERE c.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text) AND c.erased_at IS NULL
  AND c.name ~>~ $2::text AND c.name ~>=~ $3::text AND c.name ~<~ ($3::text || chr(1114111))
ORDER BY c.name USING ~<~ LIMIT $4::int
