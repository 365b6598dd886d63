-- Gives the app with bundle $1 the sealed secret $2 (and $3 as the previous one; null: the present one). A pause because
-- Apple refused the former one ends by the next trial, which is due now. Receipts that Apple never vouched for are due at
-- once where the last call brought nothing: the former secret may be why.
WITH changed AS (
    UPDATE ledger.app
    SET sealed_previous_secret = COALESCE($3::bytea, sealed_secret), sealed_secret = $2::bytea
    WHERE bundle_id = $1::text
    RETURNING app_id
), untried AS (
    UPDATE ledger.secret_trial t
    SET proved_at = NULL, refused_at = NULL, refused_receipts = '{}', is_untold = false, unanswered = 0, try_at = '-infinity'
    FROM changed c WHERE t.app_id = c.app_id
), waiting AS MATERIALIZED (
    SELECT s.receipt_id
    FROM changed c
    JOIN ledger.poll_schedule s USING (app_id)
    JOIN ledger.receipt r USING (receipt_id)
    WHERE s.backs_off AND s.leased_by IS NULL AND s.due_at > now() AND r.verified_at IS NULL
      AND s.lane IN ('new', 'sweep')
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s SKIP LOCKED
), woken AS (
    UPDATE ledger.poll_schedule s SET due_at = now(), scheduled_for = now(), lane = 'new'
    FROM waiting w WHERE s.receipt_id = w.receipt_id
)
SELECT app_id FROM changed
