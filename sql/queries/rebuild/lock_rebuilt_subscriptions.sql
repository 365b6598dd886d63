-- Rebuild: locks and reads subscriptions ($1) in natural-key order.
SELECT s.subscription_id, s.app_id, a.bundle_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by,
       s.version, ledger.as_of(s, poller) AS as_of, ledger.checked_at(s, poller) AS checked_at, s.recorded_at,
       ledger.next_check_at(s, poller) AS next_check_at, s.renewal, ledger.renewal_as_of(s, poller) AS renewal_as_of,
       s.renewal_path, s.suspected, s.leeway_ms, s.group_id, s.will_renew, s.next_payment, s.sale, s.renews_to_product_id, s.flags, s.expires_at,
       s.head_starts_at,
       s.started_at, s.periods, s.app_account_token, s.access_ends_at, s.renewal_expected
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
WHERE s.subscription_id = ANY($1::bigint[])
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR NO KEY UPDATE OF s
