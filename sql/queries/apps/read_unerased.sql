-- Returns customers of app $1 who were not erased, by the names that mean them now, at most $2.
SELECT c.name FROM ledger.customer c
WHERE c.app_id = $1::int AND c.erased_at IS NULL AND c.merged_into IS NULL
ORDER BY c.name LIMIT $2::int
