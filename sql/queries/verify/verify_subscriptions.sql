-- Verify: returns the stored subscriptions after $1 up to $2 and how they are polled. sleeps: the polling receipt waits
-- for its time and Apple responds. candidate: a receipt that could poll where none does; the Server API needs a key.
SELECT s.subscription_id, s.app_id, a.bundle_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by,
       s.version, ledger.as_of(s, p) AS as_of, ledger.checked_at(s, p) AS checked_at, s.recorded_at,
       ledger.next_check_at(s, p) AS next_check_at, s.renewal, ledger.renewal_as_of(s, p) AS renewal_as_of,
       s.renewal_path, s.suspected, s.leeway_ms, s.group_id, s.will_renew, s.next_payment, s.sale, s.renews_to_product_id, s.flags, s.expires_at,
       s.head_starts_at,
       s.started_at, s.periods, s.app_account_token, s.access_ends_at, s.renewal_expected, now() AS now,
       COALESCE(p.leased_by IS NULL AND NOT p.backs_off AND p.due_at > now()
           AND p.lane <> 'quarantine' AND GREATEST(b.paused_until, g.paused_until) <= now() AND GREATEST(b.failures, g.failures) = 0
           AND ledger.calls_a_second(b.rate, b.slowed_to, b.slowed_at, now()) = b.rate, false) AS sleeps,
       CASE WHEN s.polled_by IS NULL THEN (
           SELECT c.receipt_id FROM ledger.receipt_subscription l JOIN ledger.receipt c USING (receipt_id)
           LEFT JOIN ledger.poll_schedule q USING (receipt_id)
           WHERE l.subscription_id = s.subscription_id AND ledger.can_poll(c, q)
             AND (c.form = 'receipt' OR EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = c.app_id))
           ORDER BY c.receipt_created_at DESC NULLS LAST, c.receipt_id DESC LIMIT 1) END AS candidate
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
JOIN ledger.app_budget b USING (app_id)
CROSS JOIN ledger.apple_breaker g
LEFT JOIN ledger.receipt r ON r.receipt_id = s.polled_by
LEFT JOIN ledger.poll_schedule p ON p.receipt_id = s.polled_by
WHERE s.subscription_id > $1::bigint AND s.subscription_id <= $2::bigint AND s.version > 0
ORDER BY s.subscription_id
