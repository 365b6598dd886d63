-- Settlement, step 1: locks the schedule rows of receipts ($1) by receipt id.
SELECT s.receipt_id, s.confirmed_as_of, s.lane::text AS lane, s.lease_token,
       s.attempts - (s.leased_by IS NOT NULL)::int AS ended_attempts,
       s.leased_by IS NOT NULL AND s.due_at > clock_timestamp() AS leased
FROM ledger.poll_schedule s
WHERE s.receipt_id = ANY($1::bigint[])
ORDER BY s.receipt_id
FOR NO KEY UPDATE
