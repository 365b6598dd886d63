-- Settlement: what rejected receipts ($1) polled goes to the next newest verified receipt, which is due at $2.
WITH orphan AS (
    SELECT s.subscription_id, (
        SELECT l.receipt_id FROM ledger.receipt_subscription l JOIN ledger.receipt r USING (receipt_id)
        WHERE l.subscription_id = s.subscription_id AND r.verified_at IS NOT NULL AND r.rejections = 0 AND l.receipt_id <> ALL ($1::bigint[])
        ORDER BY r.receipt_created_at DESC NULLS LAST, l.receipt_id DESC LIMIT 1) AS heir
    FROM ledger.subscription s WHERE s.polled_by = ANY($1::bigint[])
), moved AS (
    UPDATE ledger.subscription s SET polled_by = o.heir
    FROM orphan o WHERE s.subscription_id = o.subscription_id
    RETURNING o.heir
)
INSERT INTO ledger.poll_schedule AS p (receipt_id, app_id, lane, due_at, scheduled_for)
SELECT DISTINCT r.receipt_id, r.app_id, 1, $2::timestamptz, $2::timestamptz
FROM moved m JOIN ledger.receipt r ON r.receipt_id = m.heir
ON CONFLICT (receipt_id) DO UPDATE SET due_at = LEAST(p.due_at, EXCLUDED.due_at) WHERE p.leased_by IS NULL
