-- Settlement: records at $1 which known contents of receipts their verified answers omitted: subscriptions of receipts $2,
-- one-time purchases of receipts $8. The answers contained subscriptions ($4) of receipts ($3) and one-time purchases ($6) of
-- receipts ($5). Those of receipts $7 hold purchases: they are counted up to three, and the first of them gives the time. An
-- answer that named a subscription since, about whatever receipt, begins the count anew.
WITH subscription AS (
    UPDATE ledger.receipt_subscription l
    SET omitted_at = CASE WHEN l.omitted_at <= s.checked_at OR l.absences = 0 AND l.receipt_id = ANY($7::bigint[])
                          THEN $1::timestamptz ELSE COALESCE(l.omitted_at, $1::timestamptz) END,
        absences = CASE WHEN l.omitted_at <= s.checked_at THEN 0 ELSE l.absences END
                 + (l.receipt_id = ANY($7::bigint[]))::int
    FROM ledger.subscription s
    WHERE l.receipt_id = ANY($2::bigint[]) AND s.subscription_id = l.subscription_id
      AND (l.omitted_at IS NULL OR l.omitted_at <= s.checked_at OR l.absences < 3 AND l.receipt_id = ANY($7::bigint[]))
      AND NOT EXISTS (
        SELECT FROM unnest($3::bigint[], $4::bigint[]) AS named(receipt_id, subscription_id)
        WHERE named.receipt_id = l.receipt_id AND named.subscription_id = l.subscription_id)
)
UPDATE ledger.receipt_purchase l SET omitted_at = $1::timestamptz
WHERE l.receipt_id = ANY($8::bigint[]) AND l.omitted_at IS NULL AND NOT EXISTS (
    SELECT FROM unnest($5::bigint[], $6::bigint[]) AS named(receipt_id, purchase_id)
    WHERE named.receipt_id = l.receipt_id AND named.purchase_id = l.purchase_id)
