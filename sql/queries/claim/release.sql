-- Releases claimed receipts unchecked ($1 worker, $2 receipts, $3 lease tokens): they are due again at once, and the
-- attempt does not count. An imported one returns to the front of its queue. Returns the receipts that $4 earlier
-- attempts or more brought no answer.
UPDATE ledger.poll_schedule s
SET due_at = CASE s.lane WHEN 'import' THEN timestamptz '1900-01-01 00:00:00Z' ELSE LEAST(s.scheduled_for, s.want_at) END,
    scheduled_for = LEAST(s.scheduled_for, s.want_at), want_at = NULL, leased_by = NULL, attempts = GREATEST(s.attempts - 1, 0)
FROM unnest($2::bigint[], $3::bigint[]) AS c(receipt_id, lease_token)
WHERE s.receipt_id = c.receipt_id AND s.lease_token = c.lease_token AND s.leased_by = $1::int
RETURNING CASE WHEN s.attempts >= $4::int THEN s.receipt_id END AS fruitless
