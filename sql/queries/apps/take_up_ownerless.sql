-- Has receipts ($1), which no customer sent, asked about at once where they hold what no receipt polls.
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
SELECT r.receipt_id, r.app_id, 'retry', now(), now(), r.environment IS NOT DISTINCT FROM 'Sandbox'
FROM ledger.receipt r
WHERE r.receipt_id = ANY($1::bigint[])
  AND (EXISTS (SELECT FROM ledger.receipt_subscription l JOIN ledger.subscription s USING (subscription_id)
               WHERE l.receipt_id = r.receipt_id AND s.polled_by IS NULL)
    OR EXISTS (SELECT FROM ledger.receipt_purchase l JOIN ledger.purchase p USING (purchase_id)
               WHERE l.receipt_id = r.receipt_id AND p.polled_by IS NULL))
ORDER BY r.receipt_id
ON CONFLICT DO NOTHING
