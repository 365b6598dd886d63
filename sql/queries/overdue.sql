-- What was due by $1 and is still to be asked about, per app, with the reason of a paused app.
SELECT a.bundle_id, count(*) AS receipts, count(*) FILTER (WHERE s.leased_by IS NOT NULL) AS leased,
       CASE WHEN b.open_until > now() THEN b.open_reason WHEN g.open_until > now() THEN g.open_reason END AS paused_because
FROM ledger.poll_schedule s JOIN ledger.app a USING (app_id) JOIN ledger.app_budget b USING (app_id)
CROSS JOIN ledger.apple_breaker g
WHERE GREATEST(s.due_at, s.scheduled_for) <= $1::timestamptz OR (s.leased_by IS NOT NULL AND s.scheduled_for <= $1::timestamptz)
GROUP BY a.bundle_id, b.open_until, b.open_reason, g.open_until, g.open_reason ORDER BY a.bundle_id
