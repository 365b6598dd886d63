-- Worker: sets the state of webhook $1 under fence $2: $3, because of $4, with rests $5, and for $6 seconds where it rests.
-- No row: another worker has it.
UPDATE ledger.webhook w
SET state = $3::text, reason = $4::text, rests = $5::int,
    state_since = CASE WHEN w.state = $3::text THEN w.state_since ELSE clock_timestamp() END,
    rest_until = CASE WHEN $3::text = 'resting' THEN clock_timestamp() + make_interval(secs => $6::float8) END
WHERE w.webhook_id = $1::int AND w.fence = $2::bigint
RETURNING w.webhook_id
