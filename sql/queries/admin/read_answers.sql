-- Returns Apple's answers about receipt $1, newest first, at most $2: one row for each series of equal answers.
SELECT o.observation_id, o.outcome::text AS outcome, o.status, o.reason, o.environment::text AS environment,
       o.first_as_of, o.last_as_of, o.recorded_at
FROM ledger.observation o WHERE o.receipt_id = $1::bigint
ORDER BY o.observation_id DESC LIMIT $2::int
