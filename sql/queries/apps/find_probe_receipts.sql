-- Returns receipts of app $1 that can test its shared secret, at most $2, in environment $3 (null: any): Apple vouched for
-- them and did not refuse them since, and they contain subscriptions; production receipts first, and those whose latest
-- answer said so.
SELECT r.receipt_id, r.environment::text AS environment, COALESCE(r.latest_receipt, r.data) AS data
FROM ledger.subscription s
JOIN ledger.receipt r ON r.receipt_id = s.polled_by
WHERE s.app_id = $1::int AND s.environment = COALESCE($3::text::ledger.environment, s.environment)
  AND r.verified_at IS NOT NULL AND r.rejections = 0 AND r.erased_at IS NULL
ORDER BY s.environment, (r.outcome = 'verified') DESC, s.original_transaction_id DESC
LIMIT $2::int
