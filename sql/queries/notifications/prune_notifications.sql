-- Deletes notifications received more than $1 days ago, at most the $2 oldest; returns their number. Those whose details are
-- part of the ledger stay, because a rebuild reads them. The ids of other verified ones stay for $3 days.
WITH old AS MATERIALIZED (
    SELECT notification_id FROM ledger.notification
    WHERE received_at < now() - make_interval(days => $1::int) AND effect NOT IN ('applied', 'stated')
      AND (signed_at IS NULL OR received_at < now() - make_interval(days => $3::int))
    ORDER BY received_at LIMIT $2::int
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM ledger.notification n USING old WHERE n.notification_id = old.notification_id RETURNING 1
)
SELECT count(*) AS removed FROM removed
