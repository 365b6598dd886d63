-- Settlement: links receipts ($1) with the one-time purchases ($2) they contain; a purchase omitted before is contained
-- again.
INSERT INTO ledger.receipt_purchase AS l (receipt_id, purchase_id)
SELECT * FROM unnest($1::bigint[], $2::bigint[])
ON CONFLICT (purchase_id, receipt_id) DO UPDATE SET omitted_at = NULL WHERE l.omitted_at IS NOT NULL
