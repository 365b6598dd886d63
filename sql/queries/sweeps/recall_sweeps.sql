-- Moves the planned sweeps of the next $2 scheduled receipts of app $1 forward: what is left of the wait is divided by the
-- factor with which it was planned. Returns how many receipts were looked at; the last slice ends the work.
WITH trust AS (
    SELECT t.recalled_to, t.recalled_factor, t.factor FROM ledger.sweep_trust t
    WHERE t.app_id = $1::int AND t.recalled_to IS NOT NULL
    FOR NO KEY UPDATE
), slice AS MATERIALIZED (
    SELECT s.receipt_id, s.due_at, s.lane, s.leased_by, s.backs_off
    FROM ledger.poll_schedule s
    WHERE s.app_id = $1::int AND s.receipt_id > (SELECT recalled_to FROM trust)
    ORDER BY s.receipt_id LIMIT $2::int
    FOR NO KEY UPDATE
), moved AS (
    UPDATE ledger.poll_schedule s
    SET due_at = now() + (slice.due_at - now()) * trust.factor / trust.recalled_factor,
        scheduled_for = now() + (slice.due_at - now()) * trust.factor / trust.recalled_factor
    FROM slice, trust
    WHERE s.receipt_id = slice.receipt_id AND slice.lane = 'sweep' AND slice.leased_by IS NULL AND NOT slice.backs_off
      AND slice.due_at > now()
), progress AS (
    UPDATE ledger.sweep_trust t
    SET recalled_to = CASE WHEN (SELECT count(*) FROM slice) = $2::int THEN (SELECT max(receipt_id) FROM slice) END,
        recalled_factor = CASE WHEN (SELECT count(*) FROM slice) = $2::int THEN t.recalled_factor END
    WHERE t.app_id = $1::int AND t.recalled_to IS NOT NULL
)
SELECT count(*) AS receipts FROM slice
