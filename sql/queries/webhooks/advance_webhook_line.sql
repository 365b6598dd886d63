-- Worker: the event at the head of stream $3, $4 of webhook $1 is done, under fence $2: the stream waits for its next event, or
-- for none and its line goes. The lock orders this after a move that another event of the stream is part of.
WITH held AS MATERIALIZED (
    SELECT w AS webhook, w.webhook_id FROM ledger.webhook w WHERE w.webhook_id = $1::int AND w.fence = $2::bigint FOR UPDATE
), next AS MATERIALIZED (
    SELECT h.webhook_id, (
        SELECT min(f) FROM ledger.webhook_following(h.webhook, l.stream_of, l.stream_id, l.position) f) AS position
    FROM held h JOIN ledger.webhook_line l USING (webhook_id)
    WHERE l.stream_of = $3::text AND l.stream_id = $4::bigint AND l.position = $5::bigint
), moved AS (
    UPDATE ledger.webhook_line l
    SET position = n.position, attempts = 0, next_at = clock_timestamp(), since = clock_timestamp(), status = NULL,
        reason = NULL
    FROM next n
    WHERE l.webhook_id = n.webhook_id AND l.stream_of = $3::text AND l.stream_id = $4::bigint AND n.position IS NOT NULL
), gone AS (
    DELETE FROM ledger.webhook_line l USING next n
    WHERE l.webhook_id = n.webhook_id AND l.stream_of = $3::text AND l.stream_id = $4::bigint AND n.position IS NULL)
SELECT h.webhook_id FROM held h
