-- Prune: returns answers recorded before $2 that are not the newest of their receipt, for the next receipts after $1,
-- at most $3. Rows with the outcome none are not answers and stay.
WITH next AS MATERIALIZED (
    SELECT DISTINCT o.receipt_id, r.observation_id AS newest
    FROM ledger.observation o JOIN ledger.receipt r USING (receipt_id)
    WHERE o.receipt_id > $1::bigint AND o.recorded_at < $2::timestamptz AND o.outcome <> 'none'
      AND o.observation_id IS DISTINCT FROM r.observation_id
    ORDER BY o.receipt_id LIMIT $3::int
)
SELECT o.receipt_id, o.observation_id
FROM next n JOIN ledger.observation o USING (receipt_id)
WHERE o.recorded_at < $2::timestamptz AND o.outcome <> 'none' AND o.observation_id IS DISTINCT FROM n.newest
ORDER BY o.receipt_id, o.observation_id
