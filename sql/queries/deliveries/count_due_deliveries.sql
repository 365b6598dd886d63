-- Deliveries: counts those of each app (of app $1 alone, if given) in environment $2 that have been due for more than $3
-- seconds, up to $4 of an app; also since when the oldest of these is due. The last ones may have no position yet.
SELECT a.bundle_id, count(*) AS deliveries, min(d.created_at) AS oldest_at,
       EXTRACT(epoch FROM now() - min(d.created_at))::float8 AS seconds
FROM ledger.app a
CROSS JOIN LATERAL (
    SELECT d.created_at
    FROM (SELECT q.delivery_id FROM ledger.due_delivery q
          WHERE q.app_id = a.app_id AND q.environment = $2::text::ledger.environment
          ORDER BY q.position LIMIT $4::int) q
    JOIN ledger.delivery d USING (delivery_id)) d
WHERE ($1::text IS NULL OR a.bundle_id = $1::text) AND d.created_at <= now() - make_interval(secs => $3::float8)
GROUP BY a.bundle_id ORDER BY a.bundle_id
