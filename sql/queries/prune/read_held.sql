-- Prune: returns the contents of the receipts ($1): subscriptions first, then one-time purchases.
SELECT l.receipt_id, s.subscription_id, NULL::bigint AS purchase_id, s.app_id, s.environment::text AS environment,
       s.original_transaction_id, NULL::text AS product_id, s.polled_by, ledger.as_of(s, poller) AS as_of
FROM ledger.receipt_subscription l JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
WHERE l.receipt_id = ANY($1::bigint[]) AND s.version > 0
UNION ALL
SELECT l.receipt_id, NULL, p.purchase_id, p.app_id, p.environment::text, p.original_transaction_id, p.product_id,
       p.polled_by, ledger.as_of(p, poller)
FROM ledger.receipt_purchase l JOIN ledger.purchase p USING (purchase_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
WHERE l.receipt_id = ANY($1::bigint[]) AND p.version > 0
ORDER BY 1, 2, 3
