-- Verify: returns what needs a check, after key $1 up to $2, but whose polling receipt cannot vouch or is scheduled
-- more than $3 seconds later; one-time purchases if $4, else subscriptions. Exceptions: the schedule of a leased receipt
-- is the one before its claim or a wish since then, one whose last answer was not verified backs off, and one in
-- quarantine keeps its schedule. While an app is paused, nothing is late.
WITH asked AS MATERIALIZED (
    SELECT n.app_id, n.environment, n.original_transaction_id FROM ledger.notification n WHERE n.effect = 'asked'
), polled AS (
    SELECT s.subscription_id AS key, s.app_id, s.environment, s.original_transaction_id, NULL AS product_id, s.polled_by,
           ledger.next_check_at(s, poller) AS next_check_at
    FROM ledger.subscription s LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
    WHERE NOT $4::boolean AND s.subscription_id > $1::bigint AND s.subscription_id <= $2::bigint AND s.version > 0
      AND (s.next_check_at IS NOT NULL
        OR s.polled_by IS NOT NULL AND (s.app_id, s.environment, s.original_transaction_id) IN (SELECT * FROM asked))
    UNION ALL
    SELECT p.purchase_id, p.app_id, p.environment, p.original_transaction_id, p.product_id, p.polled_by,
           ledger.next_check_at(p, poller)
    FROM ledger.purchase p LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
    WHERE $4::boolean AND p.purchase_id > $1::bigint AND p.purchase_id <= $2::bigint AND p.version > 0
      AND (p.next_check_at IS NOT NULL
        OR p.polled_by IS NOT NULL AND (p.app_id, p.environment, p.original_transaction_id) IN (SELECT * FROM asked)
        OR p.polled_by IS NULL AND EXISTS (
            SELECT FROM ledger.receipt_purchase l JOIN ledger.receipt o USING (receipt_id)
            LEFT JOIN ledger.poll_schedule q USING (receipt_id)
            WHERE l.purchase_id = p.purchase_id AND l.omitted_at IS NULL AND ledger.can_poll(o, q)
              AND (o.form = 'receipt' OR EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = o.app_id))))
), holder AS NOT MATERIALIZED (
    SELECT l.subscription_id AS key, l.receipt_id, l.omitted_at FROM ledger.receipt_subscription l WHERE NOT $4::boolean
    UNION ALL
    SELECT l.purchase_id, l.receipt_id, l.omitted_at FROM ledger.receipt_purchase l WHERE $4::boolean
)
SELECT w.key, a.bundle_id, w.environment::text AS environment, w.original_transaction_id, w.product_id,
       w.polled_by AS receipt_id, trouble.detail
FROM polled w
JOIN ledger.app a USING (app_id)
JOIN ledger.app_budget b USING (app_id)
CROSS JOIN ledger.apple_breaker g
LEFT JOIN ledger.receipt r ON r.receipt_id = w.polled_by
LEFT JOIN ledger.poll_schedule p ON p.receipt_id = w.polled_by
CROSS JOIN LATERAL (
    SELECT CASE WHEN p.leased_by IS NULL THEN p.due_at ELSE LEAST(p.want_at, p.scheduled_for) END AS at) schedule
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN w.polled_by IS NULL AND $4::boolean THEN 'no receipt is asked about it, and one could be'
        WHEN r.erased_at IS NOT NULL THEN 'its polling receipt was erased'
        WHEN r.verified_at IS NULL THEN 'Apple never vouched for its polling receipt'
        WHEN NOT EXISTS (SELECT FROM holder h WHERE h.key = w.key AND h.receipt_id = w.polled_by)
            THEN 'its polling receipt does not hold it'
        WHEN p.leased_by IS NULL
         AND EXISTS (SELECT FROM holder h WHERE h.key = w.key AND h.receipt_id = w.polled_by AND h.omitted_at IS NOT NULL)
         AND EXISTS (
            SELECT FROM holder h JOIN ledger.receipt o USING (receipt_id) LEFT JOIN ledger.poll_schedule q USING (receipt_id)
            WHERE h.key = w.key AND h.omitted_at IS NULL AND ledger.can_poll(o, q))
            THEN 'its polling receipt leaves it out and another one does not'
        WHEN p.leased_by IS NULL AND NOT ledger.can_poll(r, p) AND EXISTS (
            SELECT FROM holder h JOIN ledger.receipt o USING (receipt_id) LEFT JOIN ledger.poll_schedule q USING (receipt_id)
            WHERE h.key = w.key AND h.omitted_at IS NULL AND ledger.can_poll(o, q))
            THEN format('its polling receipt cannot go on (%s) and another one can', CASE
                WHEN r.rejections > 0 THEN 'Apple refused it' WHEN p.lane = 'quarantine' THEN 'it crashes workers'
                ELSE p.attempts || ' calls brought no answer' END)
        WHEN p.receipt_id IS NULL THEN 'its polling receipt is not scheduled'
        WHEN p.follow_ups = 0 AND p.leased_by IS NULL
         AND (w.app_id, w.environment, w.original_transaction_id) IN (SELECT * FROM asked)
            THEN 'a notification about it waits for an answer, and no follow-up is planned'
        WHEN p.backs_off OR p.lane = 'quarantine' OR w.next_check_at IS NULL THEN NULL
        WHEN schedule.at > GREATEST(w.next_check_at, now(), b.paused_until, g.paused_until)
                + make_interval(secs => $3::float8)
            THEN format('its polling receipt is asked about at %s UTC, the check is wanted at %s UTC',
                        date_trunc('second', schedule.at AT TIME ZONE 'UTC'),
                        date_trunc('second', w.next_check_at AT TIME ZONE 'UTC'))
        END AS detail) trouble
WHERE trouble.detail IS NOT NULL
ORDER BY w.key
