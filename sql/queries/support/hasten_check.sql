-- Makes the check of the receipt due that polls the subscription or purchase $3 of app $1 and environment $2. Where a check is
-- under way, another one follows. Returns how many receipts poll it.
WITH polled AS MATERIALIZED (
    SELECT s.polled_by AS receipt_id FROM ledger.subscription s
    WHERE s.app_id = $1::int AND s.environment = $2::text::ledger.environment AND s.original_transaction_id = $3::text
      AND s.polled_by IS NOT NULL
    UNION
    SELECT p.polled_by FROM ledger.purchase p
    WHERE p.app_id = $1::int AND p.environment = $2::text::ledger.environment AND p.original_transaction_id = $3::text
      AND p.polled_by IS NOT NULL
), locked AS MATERIALIZED (
    SELECT s.receipt_id, s.lane = 'quarantine' OR (s.leased_by IS NOT NULL AND s.due_at > now()) AS keeps_pace
    FROM ledger.poll_schedule s
    WHERE s.receipt_id IN (SELECT receipt_id FROM polled)
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s
), pulled AS (
    UPDATE ledger.poll_schedule s
    SET want_at = CASE WHEN l.keeps_pace THEN LEAST(s.want_at, now()) ELSE s.want_at END,
        due_at = CASE WHEN l.keeps_pace THEN s.due_at ELSE LEAST(s.due_at, now()) END,
        scheduled_for = CASE WHEN l.keeps_pace THEN s.scheduled_for ELSE LEAST(s.scheduled_for, now()) END,
        lane = CASE WHEN l.keeps_pace THEN s.lane ELSE LEAST(s.lane, 'expiring') END
    FROM locked l WHERE s.receipt_id = l.receipt_id
), put_back AS (
    INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
    SELECT p.receipt_id, $1::int, 'expiring', now(), now(), $2::text = 'Sandbox' FROM polled p
    WHERE p.receipt_id NOT IN (SELECT receipt_id FROM locked)
    ON CONFLICT DO NOTHING
)
SELECT count(*) AS receipts FROM polled
