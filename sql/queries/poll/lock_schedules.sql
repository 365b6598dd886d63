-- Locks the schedule rows of receipts ($1), by receipt id, and returns them. Intake runs it for known receipts.
-- Settlements and all other changes of what receipts poll run it before they lock receipts, subscriptions or purchases.
SELECT s.receipt_id, s.confirmed_as_of, s.lane::text AS lane, s.lease_token, s.follow_ups, s.want_at IS NOT NULL AS wanted,
       s.attempts - (s.leased_by IS NOT NULL)::int AS ended_attempts,
       s.leased_by IS NOT NULL AND s.due_at > clock_timestamp() AS leased
FROM ledger.poll_schedule s
WHERE s.receipt_id = ANY($1::bigint[])
ORDER BY s.receipt_id
FOR NO KEY UPDATE
