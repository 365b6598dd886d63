-- How the schedule stands, per app and lane.
SELECT a.bundle_id, s.lane,
       count(*) AS receipts,
       count(*) FILTER (WHERE s.due_at <= now() AND s.leased_by IS NULL) AS due,
       count(*) FILTER (WHERE GREATEST(s.due_at, s.scheduled_for) <= now() - interval '1 minute') AS overdue,
       count(*) FILTER (WHERE s.leased_by IS NOT NULL AND s.due_at > now()) AS in_flight,
       min(GREATEST(s.due_at, s.scheduled_for)) FILTER (WHERE s.leased_by IS NULL) AS next_due_at
FROM ledger.poll_schedule s JOIN ledger.app a USING (app_id)
GROUP BY a.bundle_id, s.lane ORDER BY a.bundle_id, s.lane
