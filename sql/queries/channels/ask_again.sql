-- Moves the next checks of receipts ($1) forward where the channels differ about what they poll and may agree soon: to
-- $2 seconds from now, later the longer they differ.
WITH differing AS MATERIALIZED (
    SELECT s.polled_by AS receipt_id, min(d.first_seen_at) AS since
    FROM ledger.subscription s
    JOIN ledger.channel_difference d USING (app_id, environment, original_transaction_id)
    WHERE s.polled_by = ANY($1::bigint[]) AND d.agreed_at IS NULL AND d.explanation IS NULL AND d.waits_until > now()
    GROUP BY s.polled_by
), locked AS MATERIALIZED (
    SELECT s.receipt_id, now() + GREATEST(make_interval(secs => $2::float8), (now() - f.since) / 2) AS at
    FROM ledger.poll_schedule s
    JOIN differing f USING (receipt_id)
    WHERE s.leased_by IS NULL AND s.lane <> 'quarantine'
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s
)
UPDATE ledger.poll_schedule s
SET due_at = LEAST(s.due_at, l.at), scheduled_for = LEAST(s.scheduled_for, l.at)
FROM locked l WHERE s.receipt_id = l.receipt_id
