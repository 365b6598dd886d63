-- Settlement: clears the fingerprints of receipts ($1) whose newest observation came from a lost lease; the next answer
-- is read in full.
UPDATE ledger.poll_schedule
SET fingerprint = NULL, confirmed_as_of = NULL, confirmed_at = NULL
WHERE receipt_id = ANY($1::bigint[])
