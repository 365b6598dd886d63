-- Settlement: remembers which receipts ($1) hold which one-time purchases ($2).
INSERT INTO ledger.receipt_purchase (receipt_id, purchase_id)
SELECT * FROM unnest($1::bigint[], $2::bigint[])
ON CONFLICT DO NOTHING
