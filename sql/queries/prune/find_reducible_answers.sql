-- Prune: locks and returns verified answers of the Server API after $1 that were recorded before $2 and have their texts; at
-- most $3.
SELECT o.observation_id, o.receipt_id, a.bundle_id, o.environment::text AS environment, o.first_as_of, o.last_as_of, o.body
FROM ledger.observation o JOIN ledger.app a USING (app_id)
WHERE o.observation_id > $1::bigint AND o.recorded_at < $2::timestamptz AND o.outcome = 'verified' AND NOT o.reduced
  AND o.environment IS NOT NULL AND substring(o.body FROM 1 FOR 8) = convert_to('{"asked"', 'UTF8')
ORDER BY o.observation_id LIMIT $3::int
FOR UPDATE OF o
