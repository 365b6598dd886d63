-- Verify: has receipt $1 asked about now, with follow-ups, if a notification about what it polls waits for an answer.
INSERT INTO ledger.poll_schedule AS s (receipt_id, app_id, lane, due_at, scheduled_for, follow_ups, is_sandbox)
SELECT r.receipt_id, r.app_id, 'retry', now(), now(), 4, r.environment IS NOT DISTINCT FROM 'Sandbox'
FROM ledger.receipt r
WHERE r.receipt_id = $1::bigint AND EXISTS (
    SELECT FROM ledger.notification n
    WHERE n.effect = 'asked' AND (n.app_id, n.environment, n.original_transaction_id) IN (
        SELECT o.app_id, o.environment, o.original_transaction_id FROM ledger.subscription o WHERE o.polled_by = r.receipt_id
        UNION ALL
        SELECT o.app_id, o.environment, o.original_transaction_id FROM ledger.purchase o WHERE o.polled_by = r.receipt_id))
ON CONFLICT (receipt_id) DO UPDATE
SET follow_ups = 4, fingerprint = NULL,
    due_at = CASE WHEN s.leased_by IS NULL THEN LEAST(s.due_at, now()) ELSE s.due_at END,
    scheduled_for = CASE WHEN s.leased_by IS NULL THEN LEAST(s.scheduled_for, now()) ELSE s.scheduled_for END,
    want_at = CASE WHEN s.leased_by IS NOT NULL THEN LEAST(s.want_at, now()) ELSE s.want_at END
WHERE s.follow_ups = 0
