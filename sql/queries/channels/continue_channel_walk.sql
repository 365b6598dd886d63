-- Goes on with the walk of app $1 through its receipts, $2 at most: makes those due now that poll a subscription with
-- access about which the channels were not compared since both are asked. Another process that walks is left alone.
WITH walk AS MATERIALIZED (
    SELECT w.receipt_id, a.compares_since
    FROM ledger.channel_walk w JOIN ledger.app a USING (app_id)
    WHERE w.app_id = $1::int AND w.receipt_id IS NOT NULL AND a.verifier = 'both'
    FOR UPDATE OF w SKIP LOCKED
), batch AS MATERIALIZED (
    SELECT s.receipt_id, s.due_at
    FROM ledger.poll_schedule s
    WHERE s.app_id = $1::int AND s.receipt_id > (SELECT w.receipt_id FROM walk w)
    ORDER BY s.receipt_id
    LIMIT $2::int
), waiting AS MATERIALIZED (
    SELECT DISTINCT b.receipt_id
    FROM batch b
    CROSS JOIN walk w
    JOIN ledger.subscription s ON s.polled_by = b.receipt_id
    JOIN ledger.receipt r ON r.receipt_id = b.receipt_id AND r.form = 'receipt'
    LEFT JOIN ledger.channel_comparison c USING (subscription_id)
    WHERE b.due_at > now() AND s.access_ends_at > now()
      AND (c.compared_at IS NULL OR c.compared_at < w.compares_since)
), locked AS MATERIALIZED (
    SELECT s.receipt_id
    FROM ledger.poll_schedule s
    JOIN waiting USING (receipt_id)
    WHERE s.leased_by IS NULL AND s.lane = 'sweep'
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s SKIP LOCKED
), hastened AS (
    UPDATE ledger.poll_schedule s
    SET due_at = LEAST(s.due_at, now()), scheduled_for = LEAST(s.scheduled_for, now())
    FROM locked l WHERE s.receipt_id = l.receipt_id
)
UPDATE ledger.channel_walk w
SET receipt_id = (SELECT max(b.receipt_id) FROM batch b)
FROM walk WHERE w.app_id = $1::int
