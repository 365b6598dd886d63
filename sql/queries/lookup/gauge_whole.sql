-- For metrics: returns the feed's lag behind committed events (counts at most $1 of them), the number of live workers,
-- and the number of consecutive rounds of calls, for any app, without an answer.
SELECT (SELECT position FROM ledger.feed) AS position,
       (SELECT count(*) FROM (SELECT FROM ledger.event_outbox LIMIT $1::int) o) AS unsequenced,
       COALESCE((
           SELECT EXTRACT(epoch FROM now() - e.recorded_at)
           FROM (SELECT event_id FROM ledger.event_outbox ORDER BY event_id LIMIT 1) o JOIN ledger.event e USING (event_id)
       ), 0)::float8 AS lag_seconds,
       (SELECT count(*) FROM ledger.worker
        WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '2 minutes') AS workers,
       (SELECT failures FROM ledger.apple_breaker) AS apple_failures
