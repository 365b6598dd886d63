-- Polling: takes receipts ($1), which no customer sent, out of the schedule once other receipts poll all that they polled; their rows
-- are locked. A leased one retires with its settlement.
DELETE FROM ledger.poll_schedule s
WHERE s.receipt_id = ANY($1::bigint[]) AND s.leased_by IS NULL
  AND NOT EXISTS (SELECT FROM ledger.subscription o WHERE o.polled_by = s.receipt_id)
  AND NOT EXISTS (SELECT FROM ledger.purchase o WHERE o.polled_by = s.receipt_id)
