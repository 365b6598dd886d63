-- Settlement: what refused receipts ($1) poll goes to the next newest receipt Apple vouches for, which is due at $2.
-- Without such a receipt it stays where it is, unless that one is asked no more ($3). A schedule row that is locked is
-- being asked about, settled or uploaded at this moment, so nobody waits for it here.
WITH orphan AS (
    SELECT s.subscription_id, (
        SELECT l.receipt_id FROM ledger.receipt_subscription l JOIN ledger.receipt r USING (receipt_id)
        WHERE l.subscription_id = s.subscription_id AND r.verified_at IS NOT NULL AND r.rejections = 0
          AND r.erased_at IS NULL AND l.receipt_id <> ALL ($1::bigint[])
        ORDER BY r.receipt_created_at DESC NULLS LAST, l.receipt_id DESC LIMIT 1) AS heir
    FROM ledger.subscription s WHERE s.polled_by = ANY($1::bigint[])
), moved AS (
    UPDATE ledger.subscription s SET polled_by = o.heir
    FROM orphan o
    WHERE s.subscription_id = o.subscription_id AND (o.heir IS NOT NULL OR s.polled_by = ANY($3::bigint[]))
    RETURNING o.heir
), scheduled AS MATERIALIZED (
    SELECT p.receipt_id FROM ledger.poll_schedule p
    WHERE p.receipt_id IN (SELECT heir FROM moved) AND p.leased_by IS NULL AND p.due_at > $2::timestamptz
    FOR NO KEY UPDATE SKIP LOCKED
), hastened AS (
    UPDATE ledger.poll_schedule p SET due_at = $2::timestamptz, scheduled_for = $2::timestamptz
    FROM scheduled WHERE p.receipt_id = scheduled.receipt_id
)
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for)
SELECT DISTINCT r.receipt_id, r.app_id, 1, $2::timestamptz, $2::timestamptz
FROM moved m JOIN ledger.receipt r ON r.receipt_id = m.heir
ON CONFLICT DO NOTHING
