-- Settlement: uploads of the batch's receipts ($1) that no settlement has seen, oldest first.
SELECT u.receipt_id, u.customer_id, u.imported, u.uploaded_at, c.name
FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
WHERE u.receipt_id = ANY($1::bigint[]) AND NOT u.settled
ORDER BY u.uploaded_at, u.customer_id
