-- Settlement, step 1: locks the schedule rows of the batch ($1 receipts) by receipt id.
SELECT s.receipt_id, s.confirmed_as_of
FROM ledger.poll_schedule s
WHERE s.receipt_id = ANY($1::bigint[])
ORDER BY s.receipt_id
FOR NO KEY UPDATE
