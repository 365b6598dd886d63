-- Polling: moves the checks of receipts ($1) that were planned for $2 to $3, in lanes $4, because Apple reported what they
-- would have asked. A check stays as it is where it was moved meanwhile, or where something else that the receipt polls
-- needs it earlier. The rows are locked.
UPDATE ledger.poll_schedule s
SET due_at = n.next_at, scheduled_for = n.next_at, lane = n.lane
FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::text[]::ledger.lane[])
    AS n(receipt_id, planned_at, next_at, lane)
WHERE s.receipt_id = n.receipt_id AND s.due_at = n.planned_at AND s.leased_by IS NULL AND s.attempts = 0
  AND s.lane <> 'quarantine'
  AND NOT EXISTS (
      SELECT FROM ledger.subscription o WHERE o.polled_by = n.receipt_id AND o.next_check_at < n.next_at)
  AND NOT EXISTS (SELECT FROM ledger.purchase p WHERE p.polled_by = n.receipt_id AND p.next_check_at < n.next_at)
