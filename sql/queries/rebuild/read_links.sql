-- Rebuild: returns the receipts that contain subscriptions ($1) and purchases ($2), Apple's clock at the first event of
-- each, and at the first answer that was pruned because others say the same.
SELECT l.receipt_id, l.subscription_id, NULL::bigint AS purchase_id,
       (SELECT min(e.as_of) FROM ledger.event e WHERE e.subscription_id = l.subscription_id) AS first_as_of,
       g.first_as_of AS pruned_as_of
FROM ledger.receipt_subscription l LEFT JOIN ledger.pruned_receipt g USING (receipt_id)
WHERE l.subscription_id = ANY($1::bigint[])
UNION ALL
SELECT l.receipt_id, NULL, l.purchase_id,
       (SELECT min(e.as_of) FROM ledger.event e WHERE e.purchase_id = l.purchase_id), g.first_as_of
FROM ledger.receipt_purchase l LEFT JOIN ledger.pruned_receipt g USING (receipt_id)
WHERE l.purchase_id = ANY($2::bigint[])
