-- Prune: locks and returns notifications after $1 that came before $2, have their texts; at most $3.
-- `counts`: their details are part of the ledger, or may become part of it.
SELECT n.notification_id, n.environment::text AS environment, n.texts, n.claims::text AS claims, n.effect NOT IN ('no_facts', 'unshown') AS counts
FROM ledger.notification n
WHERE n.notification_id > $1::bigint AND n.received_at < $2::timestamptz AND n.texts IS NOT NULL
ORDER BY n.notification_id LIMIT $3::int
FOR UPDATE
