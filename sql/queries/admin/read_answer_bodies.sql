-- Customer: returns Apple's answers with the numbers $1 as they came, at most $2; those without a body are left out.
SELECT o.observation_id, o.body FROM ledger.observation o
WHERE o.observation_id = ANY($1::bigint[]) AND o.body IS NOT NULL
ORDER BY o.observation_id LIMIT $2::int
