-- Settlement: remembers at $1 which verified answers left out what their receipts poll: $2 receipts and $3 subscriptions,
-- $4 receipts and $5 purchases.
WITH subscription AS (
    UPDATE ledger.receipt_subscription l SET omitted_at = $1::timestamptz
    FROM unnest($2::bigint[], $3::bigint[]) AS n(receipt_id, subscription_id)
    WHERE l.receipt_id = n.receipt_id AND l.subscription_id = n.subscription_id
)
UPDATE ledger.receipt_purchase l SET omitted_at = $1::timestamptz
FROM unnest($4::bigint[], $5::bigint[]) AS n(receipt_id, purchase_id)
WHERE l.receipt_id = n.receipt_id AND l.purchase_id = n.purchase_id
