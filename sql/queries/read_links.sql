-- Rebuild: which receipts hold subscriptions ($1) and purchases ($2), and Apple's clock at the first event of each.
SELECT l.receipt_id, l.subscription_id, NULL::bigint AS purchase_id,
       (SELECT min(e.as_of) FROM ledger.event e WHERE e.subscription_id = l.subscription_id) AS first_as_of
FROM ledger.receipt_subscription l WHERE l.subscription_id = ANY($1::bigint[])
UNION ALL
SELECT l.receipt_id, NULL, l.purchase_id,
       (SELECT min(e.as_of) FROM ledger.event e WHERE e.purchase_id = l.purchase_id)
FROM ledger.receipt_purchase l WHERE l.purchase_id = ANY($2::bigint[])
