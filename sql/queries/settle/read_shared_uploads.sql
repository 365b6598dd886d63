-- Settlement: returns who uploaded other receipts that share contents with the bare ids of transactions, the oldest upload first: receipts $1 hold subscriptions $2, receipts $3 hold purchases $4, which are locked. An erasure of such a
-- customer waits, or is seen.
SELECT n.receipt_id, u.customer_id, c.name, u.imported, NOT r.vouched AND r.form <> 'signed_transaction' AS is_pointer
FROM (
    SELECT k.receipt_id, l.receipt_id AS holder
    FROM unnest($1::bigint[], $2::bigint[]) AS k(receipt_id, subscription_id)
    JOIN ledger.receipt_subscription l ON l.subscription_id = k.subscription_id AND l.omitted_at IS NULL
    UNION
    SELECT k.receipt_id, l.receipt_id
    FROM unnest($3::bigint[], $4::bigint[]) AS k(receipt_id, purchase_id)
    JOIN ledger.receipt_purchase l ON l.purchase_id = k.purchase_id) n
JOIN ledger.receipt r ON r.receipt_id = n.holder
JOIN ledger.upload u ON u.receipt_id = n.holder
JOIN ledger.customer c USING (customer_id)
WHERE n.holder <> n.receipt_id
ORDER BY u.uploaded_at, u.customer_id
FOR KEY SHARE OF u
