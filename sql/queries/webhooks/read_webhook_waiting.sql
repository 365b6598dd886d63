-- Returns what waits for webhook $1, the oldest first, at most $2.
SELECT v.* FROM perennial.webhook_waiting_now v WHERE v.webhook_id = $1::int ORDER BY v.since, v.position LIMIT $2::int
