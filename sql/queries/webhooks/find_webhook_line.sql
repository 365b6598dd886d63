-- Returns the stream of webhook $1 whose first undelivered event is at position $2.
SELECT l.stream_of, l.stream_id, l.position FROM ledger.webhook_line l
WHERE l.webhook_id = $1::int AND l.position = $2::bigint
