-- Worker: of the streams ($3, $4) of webhook $1 that wait at $5, the events up to $6 (null: none) are done, under fence $2.
-- Each waits for its next event, or for none and its line goes. Where there is $7, the next one failed: it waits for $7
-- seconds, because of status $8 and reason $9. The lock orders this after a move that another event of a stream is part of.
-- No row: another worker has it.
WITH held AS MATERIALIZED (
    SELECT w AS webhook, w.webhook_id FROM ledger.webhook w WHERE w.webhook_id = $1::int AND w.fence = $2::bigint FOR UPDATE
), news AS MATERIALIZED (
    SELECT h.webhook_id, n.*, CASE WHEN n.done IS NULL THEN n.position ELSE (
               SELECT min(f) FROM ledger.webhook_following(h.webhook, n.stream_of, n.stream_id, n.done) f) END AS head
    FROM held h
    CROSS JOIN unnest($3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::float8[], $8::smallint[], $9::text[])
        AS n(stream_of, stream_id, position, done, seconds, status, reason)
), moved AS (
    UPDATE ledger.webhook_line l
    SET position = t.head, status = t.status, reason = t.reason,
        attempts = CASE WHEN t.done IS NULL THEN l.attempts ELSE 0 END + (t.seconds IS NOT NULL)::int,
        since = CASE WHEN t.done IS NULL THEN l.since ELSE clock_timestamp() END,
        next_at = clock_timestamp() + make_interval(secs => COALESCE(t.seconds, 0))
    FROM news t
    WHERE l.webhook_id = t.webhook_id AND l.stream_of = t.stream_of AND l.stream_id = t.stream_id
      AND l.position = t.position AND t.head IS NOT NULL
), gone AS (
    DELETE FROM ledger.webhook_line l USING news t
    WHERE l.webhook_id = t.webhook_id AND l.stream_of = t.stream_of AND l.stream_id = t.stream_id
      AND l.position = t.position AND t.head IS NULL)
SELECT h.webhook_id FROM held h
