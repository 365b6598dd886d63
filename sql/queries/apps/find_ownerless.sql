-- Returns the receipts of app $1 that are only the id of a transaction, sent by no customer: notifications made them.
SELECT r.receipt_id
FROM ledger.receipt r
WHERE r.app_id = $1::int AND r.form = 'transaction_id' AND r.erased_at IS NULL
  AND NOT EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
  AND NOT EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id)
ORDER BY r.receipt_id
