-- Prune: deletes the answers $1, recorded before $2, and stores their earliest time for each receipt.
WITH gone AS (
    DELETE FROM ledger.observation o
    WHERE o.observation_id = ANY($1::bigint[]) AND o.recorded_at < $2::timestamptz
    RETURNING o.receipt_id, o.first_as_of
)
INSERT INTO ledger.pruned_receipt AS p (receipt_id, answers, first_as_of, pruned_at)
SELECT g.receipt_id, count(*), min(g.first_as_of), now() FROM gone g GROUP BY g.receipt_id
ON CONFLICT (receipt_id) DO UPDATE SET
    answers = p.answers + EXCLUDED.answers, first_as_of = LEAST(p.first_as_of, EXCLUDED.first_as_of),
    pruned_at = EXCLUDED.pruned_at
