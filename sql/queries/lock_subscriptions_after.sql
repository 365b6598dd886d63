-- Rebuild: locks and reads the next subscriptions after $1, at most $2, of app $3 and of the receipts of customer $4
-- (nulls: all), in natural-key order.
SELECT s.subscription_id, s.app_id, a.bundle_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by,
       s.version, s.as_of, s.checked_at, s.recorded_at, s.next_check_at, s.renewal, s.renewal_as_of, s.renewal_path,
       s.suspected, s.leeway_ms, s.group_id, s.will_renew, s.renews_to_product_id, s.flags, s.expires_at, s.head_starts_at,
       s.started_at, s.periods, s.app_account_token, s.access_ends_at, s.renewal_expected
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
WHERE s.subscription_id IN (
    SELECT n.subscription_id FROM ledger.subscription n JOIN ledger.app b USING (app_id)
    WHERE n.subscription_id > $1::bigint AND n.version > 0 AND ($3::text IS NULL OR b.bundle_id = $3::text)
      AND ($4::text IS NULL OR EXISTS (
            SELECT FROM ledger.receipt_subscription l JOIN ledger.upload u USING (receipt_id)
            JOIN ledger.customer c USING (customer_id)
            WHERE l.subscription_id = n.subscription_id AND c.name = $4::text))
    ORDER BY n.subscription_id LIMIT $2::int)
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR NO KEY UPDATE OF s
