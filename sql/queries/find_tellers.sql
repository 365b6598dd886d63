-- Receipts of app $1 whose answers tell whether its shared secret is right, at most $2: Apple vouched for them last, and they
-- hold subscriptions; those of production first.
SELECT r.receipt_id, r.environment::text AS environment, COALESCE(r.latest_receipt, r.data) AS data
FROM ledger.subscription s
JOIN ledger.receipt r ON r.receipt_id = s.polled_by
WHERE s.app_id = $1::int AND r.outcome = 'verified' AND r.erased_at IS NULL
ORDER BY s.environment, s.original_transaction_id DESC
LIMIT $2::int
