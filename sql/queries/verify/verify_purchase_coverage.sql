-- Verify: returns one-time purchases after $1 up to $2 that need a check; the rules are those of verify_coverage.sql,
-- $3 seconds too.
SELECT s.purchase_id AS key, a.bundle_id, s.environment::text AS environment, s.original_transaction_id,
       s.product_id, s.polled_by AS receipt_id, trouble.detail
FROM ledger.purchase s
JOIN ledger.app a USING (app_id)
JOIN ledger.app_budget b USING (app_id)
CROSS JOIN ledger.apple_breaker g
LEFT JOIN ledger.receipt r ON r.receipt_id = s.polled_by
LEFT JOIN ledger.poll_schedule p ON p.receipt_id = s.polled_by
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN r.erased_at IS NOT NULL THEN 'its polling receipt was erased'
        WHEN r.verified_at IS NULL THEN 'Apple never vouched for its polling receipt'
        WHEN NOT EXISTS (
            SELECT FROM ledger.receipt_purchase l
            WHERE l.purchase_id = s.purchase_id AND l.receipt_id = s.polled_by)
            THEN 'its polling receipt does not hold it'
        WHEN p.leased_by IS NULL AND NOT ledger.can_poll(r, p) AND EXISTS (
            SELECT FROM ledger.receipt_purchase l JOIN ledger.receipt o USING (receipt_id)
            LEFT JOIN ledger.poll_schedule q USING (receipt_id)
            WHERE l.purchase_id = s.purchase_id AND l.omitted_at IS NULL AND ledger.can_poll(o, q))
            THEN 'its polling receipt cannot go on and another one can'
        WHEN p.receipt_id IS NULL THEN 'its polling receipt is not scheduled'
        WHEN p.leased_by IS NOT NULL OR p.backs_off OR p.lane = 'quarantine' THEN NULL
        WHEN p.due_at > GREATEST(s.next_check_at, now(), b.open_until, g.open_until)
                + make_interval(secs => $3::float8)
            THEN format('its polling receipt is asked about at %s UTC, the check is wanted at %s UTC',
                        date_trunc('second', p.due_at AT TIME ZONE 'UTC'),
                        date_trunc('second', s.next_check_at AT TIME ZONE 'UTC'))
        END AS detail) trouble
WHERE s.purchase_id > $1::bigint AND s.purchase_id <= $2::bigint AND s.version > 0
  AND s.next_check_at IS NOT NULL AND trouble.detail IS NOT NULL
ORDER BY s.purchase_id
