-- Customer: locks the receipts of customers ($1) by receipt id; step 2. Whoever settles an answer about one waits, or is
-- waited for.
SELECT r.receipt_id FROM ledger.receipt r
WHERE r.receipt_id IN (SELECT u.receipt_id FROM ledger.upload u WHERE u.customer_id = ANY($1::bigint[]))
ORDER BY r.receipt_id
FOR NO KEY UPDATE
