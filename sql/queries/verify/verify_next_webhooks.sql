-- Verify: returns the end of the next slice of at most $2 webhooks after $1; null when there are none.
SELECT max(n.webhook_id)::bigint AS until
FROM (SELECT webhook_id FROM ledger.webhook WHERE webhook_id > $1::bigint ORDER BY webhook_id LIMIT $2::int) n
