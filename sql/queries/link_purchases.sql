-- Settlement: remembers which receipts ($1) hold which one-time purchases ($2); what was left out once is held again.
INSERT INTO ledger.receipt_purchase AS l (receipt_id, purchase_id)
SELECT * FROM unnest($1::bigint[], $2::bigint[])
ON CONFLICT (purchase_id, receipt_id) DO UPDATE SET omitted_at = NULL WHERE l.omitted_at IS NOT NULL
