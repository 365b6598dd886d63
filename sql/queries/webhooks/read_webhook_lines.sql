-- Worker: returns what waits for webhook $1 and is due, or with $3 everything, at most $2, with the messages. No message: the
-- event is for no webhook any more.
WITH due AS MATERIALIZED (
    SELECT l.position, l.stream_of, l.stream_id, l.attempts
    FROM ledger.webhook_line l
    WHERE l.webhook_id = $1::int AND ($3::bool OR l.next_at <= clock_timestamp())
    ORDER BY l.next_at LIMIT $2::int
)
SELECT d.position, d.stream_of, d.stream_id, d.attempts, m.identity, m.body
FROM due d
LEFT JOIN ledger.webhook_messages(ARRAY(
    SELECT d.position FROM due d
    JOIN ledger.event_feed f USING (position) JOIN ledger.event e USING (event_id)
    JOIN ledger.webhook w ON w.webhook_id = $1::int
    WHERE ledger.webhook_takes(w, e))) m USING (position)
