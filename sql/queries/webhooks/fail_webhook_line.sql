-- Worker: a call about the head of stream $3, $4 of webhook $1 failed, under fence $2: it waits for $6 seconds, because of
-- status $7 and reason $8. $5 is its position. No row: another worker has it.
WITH held AS (
    SELECT w.webhook_id FROM ledger.webhook w WHERE w.webhook_id = $1::int AND w.fence = $2::bigint FOR SHARE
), failed AS (
    UPDATE ledger.webhook_line l
    SET attempts = l.attempts + 1, next_at = clock_timestamp() + make_interval(secs => $6::float8), status = $7::smallint,
        reason = $8::text
    FROM held h
    WHERE l.webhook_id = h.webhook_id AND l.stream_of = $3::text AND l.stream_id = $4::bigint AND l.position = $5::bigint)
SELECT h.webhook_id FROM held h
