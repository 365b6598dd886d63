-- Settlement: an answer whose lease was lost became the receipts' ($1) newest observation, so the next answer is read in full.
UPDATE ledger.poll_schedule
SET fingerprint = NULL, confirmed_as_of = NULL, confirmed_at = NULL
WHERE receipt_id = ANY($1::bigint[])
