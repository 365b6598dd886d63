-- Settlement: returns the uploads of the batch's receipts ($1), oldest first, and whether a settlement has already
-- handled them.
SELECT u.receipt_id, u.customer_id, u.imported, u.settled, c.name
FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
WHERE u.receipt_id = ANY($1::bigint[])
ORDER BY u.uploaded_at, u.customer_id
