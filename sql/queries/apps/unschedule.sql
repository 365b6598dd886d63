-- Takes receipts ($1) out of the schedule; their rows are locked, and nothing is polled through them.
DELETE FROM ledger.poll_schedule s WHERE s.receipt_id = ANY($1::bigint[])
