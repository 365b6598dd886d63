-- Settlement: returns what the ledger links to those of receipts ($1) about which a claim or an order is to be decided, or by
-- which alone no owner is proved; locks nothing. An answer need not repeat it. A one-time purchase that an answer leaves out was used up, and stays the
-- receipt's; a subscription does not.
WITH claimed AS MATERIALIZED (
    SELECT r.receipt_id FROM unnest($1::bigint[]) AS r(receipt_id)
    WHERE EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id AND NOT u.settled)
       OR EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id)
       OR EXISTS (SELECT FROM ledger.receipt p WHERE p.receipt_id = r.receipt_id AND p.form = 'transaction_id')
)
SELECT c.receipt_id, s.subscription_id, NULL::bigint AS purchase_id, s.app_id, s.environment::text AS environment,
       s.original_transaction_id, NULL::text AS product_id
FROM claimed c
JOIN ledger.receipt_subscription l USING (receipt_id)
JOIN ledger.subscription s USING (subscription_id)
WHERE l.omitted_at IS NULL AND s.version > 0
UNION ALL
SELECT c.receipt_id, NULL, p.purchase_id, p.app_id, p.environment::text, p.original_transaction_id, p.product_id
FROM claimed c
JOIN ledger.receipt_purchase l USING (receipt_id)
JOIN ledger.purchase p USING (purchase_id)
WHERE p.version > 0
