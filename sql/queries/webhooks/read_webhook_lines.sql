-- Worker: returns the streams that wait for webhook $1 and are due, or with $3 all, at most $2, with their next events and
-- messages, together about $2. No message: no event of the stream is for the webhook any more.
WITH due AS MATERIALIZED (
    SELECT l.stream_of, l.stream_id, l.position AS line, l.attempts, w AS webhook
    FROM ledger.webhook_line l JOIN ledger.webhook w USING (webhook_id)
    WHERE l.webhook_id = $1::int AND ($3::bool OR l.next_at <= clock_timestamp())
    ORDER BY l.next_at LIMIT $2::int
), found AS MATERIALIZED (
    SELECT d.stream_of, d.stream_id, d.line, COALESCE(f.position, d.line) AS position,
           CASE WHEN COALESCE(f.position, d.line) = d.line THEN d.attempts ELSE 0 END AS attempts, f.position IS NOT NULL AS is_taken
    FROM due d
    LEFT JOIN LATERAL (
        SELECT n AS position FROM ledger.webhook_following(d.webhook, d.stream_of, d.stream_id, d.line - 1) n
        LIMIT GREATEST(1, $2::int / (SELECT count(*) FROM due))) f ON true
)
SELECT f.position, f.stream_of, f.stream_id, f.line, f.attempts, m.identity, m.body
FROM found f
LEFT JOIN ledger.webhook_messages(ARRAY(SELECT n.position FROM found n WHERE n.is_taken)) m USING (position)
ORDER BY f.position
