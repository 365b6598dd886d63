-- Counts receipts that were due by $1 and are not checked yet, per app and reason: that the app is paused, or where its
-- secret is refused the receipts' environment. No lease is longer than the longest one for $2 seconds (see claim.sql), so
-- only the beginning of the due index is read.
WITH unasked AS MATERIALIZED (
    SELECT a.app_id, s.is_leased, s.is_sandbox
    FROM ledger.app a
    CROSS JOIN unnest(enum_range(NULL::ledger.lane)) l(lane)
    CROSS JOIN LATERAL (
        SELECT s.leased_by IS NOT NULL AS is_leased, s.is_sandbox
        FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at <= $1::timestamptz AND s.scheduled_for <= $1::timestamptz
        UNION ALL
        SELECT true, s.is_sandbox
        FROM ledger.poll_schedule s
        WHERE s.app_id = a.app_id AND s.lane = l.lane AND s.due_at > $1::timestamptz
          AND s.due_at <= now() + make_interval(secs => $2::float8 * CASE l.lane WHEN 'quarantine' THEN 1024 ELSE 64 END)
          AND s.leased_by IS NOT NULL AND s.scheduled_for <= $1::timestamptz) s
)
SELECT a.bundle_id, count(*) AS receipts, count(*) FILTER (WHERE u.is_leased) AS leased,
       CASE WHEN b.paused_until > now() THEN b.paused_because WHEN g.paused_until > now() THEN g.paused_because
            ELSE held.because END AS paused_because
FROM unasked u JOIN ledger.app a USING (app_id) JOIN ledger.app_budget b USING (app_id)
CROSS JOIN ledger.apple_breaker g
LEFT JOIN (
    SELECT a.app_id, e.is_sandbox, ledger.secret_pause(a.app_id, e.is_sandbox) AS because
    FROM ledger.app a CROSS JOIN (VALUES (false), (true)) e(is_sandbox)) held
    ON held.app_id = u.app_id AND held.is_sandbox = u.is_sandbox
GROUP BY a.bundle_id, 4 ORDER BY a.bundle_id, 4
