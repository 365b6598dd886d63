-- Has receipts ($1) asked about $2 seconds from now, or $4 seconds after their last answer or after the check under way, for
-- notifications whose subject no receipt polls. With $3 they are asked again until an answer shows what the notification states.
WITH wanted AS MATERIALIZED (
    SELECT r.receipt_id, r.app_id, r.environment, GREATEST(
               now() + make_interval(secs => $2::float8),
               CASE WHEN s.leased_by IS NOT NULL AND s.due_at > now() THEN now()
                    ELSE GREATEST(r.asked_at, s.confirmed_at) END + make_interval(secs => $4::float8)) AS at
    FROM ledger.receipt r LEFT JOIN ledger.poll_schedule s USING (receipt_id)
    WHERE r.receipt_id = ANY($1::bigint[]) AND r.erased_at IS NULL
), locked AS MATERIALIZED (
    SELECT s.receipt_id, s.lane = 'quarantine' OR (s.leased_by IS NOT NULL AND s.due_at > now()) AS keeps_pace
    FROM ledger.poll_schedule s WHERE s.receipt_id = ANY($1::bigint[])
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE
), pulled AS (
    UPDATE ledger.poll_schedule s
    SET want_at = CASE WHEN l.keeps_pace THEN LEAST(s.want_at, w.at) ELSE s.want_at END,
        due_at = CASE WHEN l.keeps_pace THEN s.due_at ELSE LEAST(s.due_at, w.at) END,
        scheduled_for = CASE WHEN l.keeps_pace THEN s.scheduled_for ELSE LEAST(s.scheduled_for, w.at) END,
        lane = CASE WHEN l.keeps_pace THEN s.lane ELSE LEAST(s.lane, 'retry') END,
        follow_ups = CASE WHEN $3::boolean THEN 4 ELSE s.follow_ups END, fingerprint = NULL
    FROM locked l JOIN wanted w USING (receipt_id)
    WHERE s.receipt_id = l.receipt_id
)
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, follow_ups, is_sandbox)
SELECT w.receipt_id, w.app_id, 'retry', w.at, w.at, CASE WHEN $3::boolean THEN 4 ELSE 0 END,
       w.environment IS NOT DISTINCT FROM 'Sandbox'
FROM wanted w
WHERE w.receipt_id NOT IN (SELECT receipt_id FROM locked)
ORDER BY w.receipt_id
ON CONFLICT DO NOTHING
