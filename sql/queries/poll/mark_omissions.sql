-- Settlement: records at $1 which known contents of receipts ($2) their verified answers omitted. The answers contained
-- subscriptions ($4) of receipts ($3) and one-time purchases ($6) of receipts ($5).
WITH subscription AS (
    UPDATE ledger.receipt_subscription l SET omitted_at = $1::timestamptz
    WHERE l.receipt_id = ANY($2::bigint[]) AND l.omitted_at IS NULL AND NOT EXISTS (
        SELECT FROM unnest($3::bigint[], $4::bigint[]) AS named(receipt_id, subscription_id)
        WHERE named.receipt_id = l.receipt_id AND named.subscription_id = l.subscription_id)
)
UPDATE ledger.receipt_purchase l SET omitted_at = $1::timestamptz
WHERE l.receipt_id = ANY($2::bigint[]) AND l.omitted_at IS NULL AND NOT EXISTS (
    SELECT FROM unnest($5::bigint[], $6::bigint[]) AS named(receipt_id, purchase_id)
    WHERE named.receipt_id = l.receipt_id AND named.purchase_id = l.purchase_id)
