-- Hands claimed receipts back unasked ($1 worker, $2 receipts, $3 lease tokens): due again at once, the attempt not counted;
-- an imported one at the front of its line, where it was taken from.
UPDATE ledger.poll_schedule s
SET due_at = CASE s.lane WHEN 3 THEN timestamptz '1900-01-01 00:00:00Z' ELSE LEAST(s.scheduled_for, s.want_at) END,
    want_at = NULL, leased_by = NULL, attempts = GREATEST(s.attempts - 1, 0)
FROM unnest($2::bigint[], $3::bigint[]) AS c(receipt_id, lease_token)
WHERE s.receipt_id = c.receipt_id AND s.lease_token = c.lease_token AND s.leased_by = $1::int
