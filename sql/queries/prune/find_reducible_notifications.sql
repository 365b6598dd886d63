-- Prune: locks and returns notifications after $1 that came before $2, have their texts and are not to be applied; at most $3.
SELECT n.notification_id, n.environment::text AS environment, n.texts, n.claims::text AS claims
FROM ledger.notification n
WHERE n.notification_id > $1::bigint AND n.received_at < $2::timestamptz AND n.texts IS NOT NULL AND n.apply_at IS NULL
ORDER BY n.notification_id LIMIT $3::int
FOR UPDATE
