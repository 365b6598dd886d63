-- Settlement: links receipts ($1) with the subscriptions ($2) they contain; a subscription omitted before is contained
-- again.
INSERT INTO ledger.receipt_subscription AS l (receipt_id, subscription_id)
SELECT * FROM unnest($1::bigint[], $2::bigint[])
ON CONFLICT (subscription_id, receipt_id) DO UPDATE SET omitted_at = NULL, absences = 0 WHERE l.omitted_at IS NOT NULL
