-- Rebuild: returns the next subscriptions after $1, at most $2, of app $3 and of the receipts of customer $4 (nulls:
-- all).
SELECT n.subscription_id FROM ledger.subscription n JOIN ledger.app b USING (app_id)
WHERE n.subscription_id > $1::bigint AND n.version > 0 AND ($3::text IS NULL OR b.bundle_id = $3::text)
  AND ($4::text IS NULL OR EXISTS (
        SELECT FROM ledger.receipt_subscription l JOIN ledger.upload u USING (receipt_id)
        JOIN ledger.customer c USING (customer_id)
        WHERE l.subscription_id = n.subscription_id AND c.name = $4::text))
ORDER BY n.subscription_id LIMIT $2::int
