-- Settlement: records at $1 which known contents of receipts ($2) their verified answers omitted. The answers contained
-- subscriptions ($4) of receipts ($3) and one-time purchases ($6) of receipts ($5). Those of receipts $7 hold purchases:
-- they are counted up to three, and the first of them gives the time.
WITH subscription AS (
    UPDATE ledger.receipt_subscription l
    SET omitted_at = CASE WHEN l.absences = 0 AND l.receipt_id = ANY($7::bigint[]) THEN $1::timestamptz
                          ELSE COALESCE(l.omitted_at, $1::timestamptz) END,
        absences = l.absences + (l.receipt_id = ANY($7::bigint[]))::int
    WHERE l.receipt_id = ANY($2::bigint[])
      AND (l.omitted_at IS NULL OR l.absences < 3 AND l.receipt_id = ANY($7::bigint[])) AND NOT EXISTS (
        SELECT FROM unnest($3::bigint[], $4::bigint[]) AS named(receipt_id, subscription_id)
        WHERE named.receipt_id = l.receipt_id AND named.subscription_id = l.subscription_id)
)
UPDATE ledger.receipt_purchase l SET omitted_at = $1::timestamptz
WHERE l.receipt_id = ANY($2::bigint[]) AND l.omitted_at IS NULL AND NOT EXISTS (
    SELECT FROM unnest($5::bigint[], $6::bigint[]) AS named(receipt_id, purchase_id)
    WHERE named.receipt_id = l.receipt_id AND named.purchase_id = l.purchase_id)
