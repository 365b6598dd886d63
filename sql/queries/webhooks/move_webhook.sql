-- Worker: moves webhook $1 under fence $2 forward to position $3 and renews the lease for $4 seconds; streams ($5, $6) wait from their
-- first unanswered events ($7) on, after $8 attempts, for $9 seconds, because of status $10 and reason $11. Those that wait
-- already stay as they are. No row: another worker has it.
WITH held AS (
    UPDATE ledger.webhook w
    SET position = GREATEST(w.position, $3::bigint), lease_until = clock_timestamp() + make_interval(secs => $4::float8)
    WHERE w.webhook_id = $1::int AND w.fence = $2::bigint
    RETURNING w.webhook_id
), added AS (
    INSERT INTO ledger.webhook_line (webhook_id, stream_of, stream_id, position, attempts, next_at, status, reason)
    SELECT h.webhook_id, n.stream_of, n.stream_id, n.position, n.attempts,
           clock_timestamp() + make_interval(secs => n.seconds), n.status, n.reason
    FROM held h
    CROSS JOIN unnest($5::text[], $6::bigint[], $7::bigint[], $8::int[], $9::float8[], $10::smallint[], $11::text[])
        AS n(stream_of, stream_id, position, attempts, seconds, status, reason)
    ON CONFLICT DO NOTHING)
SELECT h.webhook_id FROM held h
