-- Deliveries: counts those of each app (of app $1 alone, if given) in environment $2 that have been due for more than $3
-- seconds, up to $4 of an app; also since when the oldest of these is due. They lie in the order in which they came.
SELECT a.bundle_id, count(*) AS deliveries, min(d.created_at) AS oldest_at,
       EXTRACT(epoch FROM now() - min(d.created_at))::float8 AS seconds
FROM ledger.app a
CROSS JOIN LATERAL (
    SELECT d.created_at FROM ledger.delivery d
    WHERE d.app_id = a.app_id AND d.environment = $2::text::ledger.environment AND d.state = 'due'
    ORDER BY d.position LIMIT $4::int) d
WHERE ($1::text IS NULL OR a.bundle_id = $1::text) AND d.created_at <= now() - make_interval(secs => $3::float8)
GROUP BY a.bundle_id ORDER BY a.bundle_id
