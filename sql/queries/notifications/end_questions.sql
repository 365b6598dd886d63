-- Polling: no receipt is asked any more about subscriptions ($1) and purchases ($2), nor by the transaction ids of receipts ($3):
-- no answer will show what notifications about them state.
WITH subject AS (
    SELECT s.app_id, s.environment, s.original_transaction_id FROM ledger.subscription s
    WHERE s.subscription_id = ANY($1::bigint[])
    UNION
    SELECT p.app_id, p.environment, p.original_transaction_id FROM ledger.purchase p WHERE p.purchase_id = ANY($2::bigint[])
)
UPDATE ledger.notification n SET effect = 'unshown'
WHERE n.effect = 'asked'
  AND ((n.app_id, n.environment, n.original_transaction_id) IN (SELECT * FROM subject)
    OR (n.app_id, COALESCE(n.transaction_id, n.original_transaction_id)) IN (
        SELECT r.app_id, r.transaction_id FROM ledger.receipt r
        WHERE r.receipt_id = ANY($3::bigint[]) AND r.form = 'transaction_id'))
