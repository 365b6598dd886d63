-- Verify: reports that worker $2 continues the turn $1, or with $3 that it has finished; no row when another worker has
-- the turn.
UPDATE ledger.verify_turn t SET moved_at = now(), ended_at = CASE WHEN $3::boolean THEN now() END
WHERE t.name = $1::text AND t.worker_id = $2::int AND t.ended_at IS NULL
RETURNING t.name
