-- Verify: gives worker $2 the turn $1, if it ended and last began $3 seconds ago or more, or its worker made no
-- progress for $4 seconds.
UPDATE ledger.verify_turn t SET worker_id = $2::int, begun_at = now(), moved_at = now(), ended_at = NULL
WHERE t.name = $1::text
  AND CASE WHEN t.ended_at IS NOT NULL THEN t.begun_at <= now() - make_interval(secs => $3::float8)
           ELSE t.moved_at <= now() - make_interval(secs => $4::float8) END
RETURNING t.name
