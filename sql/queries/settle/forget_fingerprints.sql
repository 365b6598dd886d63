-- Settlement: clears the fingerprints of receipts ($1) that poll what this transaction changed; their next answers are
-- read in full. It clears the clocks of equal answers too, which are folded, of receipts ($2) that take over and of
-- those whose newest observation came from a lost lease.
UPDATE ledger.poll_schedule s
SET fingerprint = NULL, meaning = NULL, polled = NULL, equal_until = NULL,
    confirmed_as_of = CASE WHEN s.receipt_id <> ALL($2::bigint[]) THEN s.confirmed_as_of END,
    confirmed_at = CASE WHEN s.receipt_id <> ALL($2::bigint[]) THEN s.confirmed_at END
WHERE s.receipt_id = ANY($1::bigint[] || $2::bigint[]) AND s.confirmed_at IS NOT NULL
