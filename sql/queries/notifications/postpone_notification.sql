-- Puts off the longest due notification, because applying it failed ($2: why): by $1 seconds, and twice as long each time.
UPDATE ledger.notification n
SET apply_at = now() + make_interval(secs => $1::float8 * (1 << LEAST(n.attempts, 10))), attempts = n.attempts + 1,
    reason = $2::text
WHERE n.notification_id = (
    SELECT l.notification_id FROM ledger.notification l
    WHERE l.apply_at <= now() ORDER BY l.apply_at, l.notification_id LIMIT 1 FOR UPDATE SKIP LOCKED)
