-- Settlement: takes receipts that need no more questions off the schedule, if the lease is still ours; $2 receipts, $3 tokens.
DELETE FROM ledger.poll_schedule s
USING unnest($2::bigint[], $3::bigint[]) AS n(receipt_id, lease_token)
WHERE s.receipt_id = n.receipt_id AND s.lease_token = n.lease_token AND s.leased_by = $1::int
