-- Polling: returns the subscriptions and one-time purchases that receipts $1 hold and that no receipt polls; locks
-- nothing.
SELECT s.subscription_id, NULL::bigint AS purchase_id
FROM ledger.receipt_subscription l JOIN ledger.subscription s USING (subscription_id)
WHERE l.receipt_id = ANY($1::bigint[]) AND s.polled_by IS NULL AND s.version > 0
UNION
SELECT NULL, p.purchase_id
FROM ledger.receipt_purchase l JOIN ledger.purchase p USING (purchase_id)
WHERE l.receipt_id = ANY($1::bigint[]) AND p.polled_by IS NULL AND p.version > 0
