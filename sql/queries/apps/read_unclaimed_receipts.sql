-- Returns receipts of app $1 that no customer uploaded and that were not erased, at most $2.
SELECT r.receipt_id FROM ledger.receipt r
WHERE r.app_id = $1::int AND r.erased_at IS NULL
  AND NOT EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
ORDER BY r.receipt_id LIMIT $2::int
