-- Locks the schedule rows of known receipts (app $1, digests $2) before anything else of them is written.
SELECT s.receipt_id
FROM ledger.poll_schedule s JOIN ledger.receipt r USING (receipt_id)
WHERE r.app_id = $1::int AND r.digest = ANY($2::bytea[])
ORDER BY s.receipt_id
FOR NO KEY UPDATE OF s
