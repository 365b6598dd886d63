-- Changes webhook $1: url $2, concurrency $3, and state $4, on or off (nulls: as before).
UPDATE ledger.webhook w
SET url = COALESCE($2::text, w.url), concurrency = COALESCE($3::smallint, w.concurrency),
    state = COALESCE($4::text, w.state), reason = CASE WHEN $4::text IS NULL THEN w.reason END,
    state_since = CASE WHEN $4::text IS NULL THEN w.state_since ELSE clock_timestamp() END,
    rests = CASE WHEN $4::text IS NULL THEN w.rests ELSE 0 END,
    rest_until = CASE WHEN $4::text IS NULL THEN w.rest_until END
WHERE w.webhook_id = $1::int
