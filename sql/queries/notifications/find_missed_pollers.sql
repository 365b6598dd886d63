-- Returns the receipts that poll subscription or purchase $3 (app $1, environment $2) and have no follow-ups.
SELECT w.receipt_id
FROM (SELECT s.polled_by AS receipt_id FROM ledger.subscription s
      WHERE s.app_id = $1::int AND s.environment = $2::text::ledger.environment AND s.original_transaction_id = $3::text
      UNION
      SELECT p.polled_by FROM ledger.purchase p
      WHERE p.app_id = $1::int AND p.environment = $2::text::ledger.environment AND p.original_transaction_id = $3::text) w
LEFT JOIN ledger.poll_schedule s USING (receipt_id)
WHERE w.receipt_id IS NOT NULL AND COALESCE(s.follow_ups, 0) = 0
