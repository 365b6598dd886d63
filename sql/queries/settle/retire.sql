-- Settlement: removes receipts that need no more checks from the schedule, if the lease is still ours; $1 worker, $2
-- receipts, $3 tokens. A receipt for which a check was requested meanwhile is checked once more.
WITH ours AS MATERIALIZED (
    SELECT s.receipt_id, s.want_at
    FROM ledger.poll_schedule s JOIN unnest($2::bigint[], $3::bigint[]) AS n(receipt_id, lease_token)
        USING (receipt_id, lease_token)
    WHERE s.leased_by = $1::int
), wanted AS (
    UPDATE ledger.poll_schedule s
    SET due_at = ours.want_at, scheduled_for = ours.want_at, want_at = NULL, lane = 'expiring', attempts = 0, leased_by = NULL,
        crashes = 0, backs_off = false, fingerprint = NULL, meaning = NULL, polled = NULL, equal_until = NULL, confirmed_as_of = NULL,
        confirmed_at = NULL
    FROM ours WHERE s.receipt_id = ours.receipt_id AND ours.want_at IS NOT NULL
)
DELETE FROM ledger.poll_schedule s
USING ours WHERE s.receipt_id = ours.receipt_id AND ours.want_at IS NULL
