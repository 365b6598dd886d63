-- Returns the schedule of receipt $1; no row means that it is no longer checked.
SELECT s.lane::text AS lane, s.due_at, s.scheduled_for, s.attempts, s.crashes,
       s.leased_by IS NOT NULL AND s.due_at > now() AS in_flight,
       CASE WHEN b.paused_until > now() THEN b.paused_because ELSE r.paused_because END AS paused_because
FROM ledger.poll_schedule s LEFT JOIN ledger.app_budget b USING (app_id) LEFT JOIN perennial.receipt_now r USING (receipt_id)
WHERE s.receipt_id = $1::bigint
