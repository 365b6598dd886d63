-- Rebuild: returns Apple's answers about receipts ($1), after the observation $2, at most $3; the newest observation of
-- a receipt ends with the newest equal answer.
SELECT o.observation_id, o.receipt_id, a.bundle_id, o.outcome::text AS outcome, o.reason, o.environment::text AS environment,
       o.first_as_of, o.body,
       CASE WHEN r.observation_id = o.observation_id THEN GREATEST(o.last_as_of, s.confirmed_as_of)
            ELSE o.last_as_of END AS last_as_of
FROM ledger.observation o
JOIN ledger.app a USING (app_id)
JOIN ledger.receipt r USING (receipt_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id)
WHERE o.receipt_id = ANY($1::bigint[]) AND o.observation_id > $2::bigint AND o.outcome IN ('verified', 'none')
ORDER BY o.observation_id LIMIT $3::int
