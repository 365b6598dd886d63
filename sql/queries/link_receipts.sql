-- Settlement: remembers which receipts ($1) hold which subscriptions ($2).
INSERT INTO ledger.receipt_subscription (receipt_id, subscription_id)
SELECT * FROM unnest($1::bigint[], $2::bigint[])
ON CONFLICT DO NOTHING
