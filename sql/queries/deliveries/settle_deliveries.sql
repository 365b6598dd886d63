-- Deliveries: makes due deliveries ($1) acknowledged, or skipped if there is a reason ($4), at $2 by $3. Returns all
-- that exist of $1 with their state; is_first marks those that changed.
WITH changed AS (
    UPDATE ledger.delivery d
    SET state = CASE WHEN $4::text IS NULL THEN 'acknowledged' ELSE 'skipped' END::ledger.delivery_state,
        settled_at = $2::timestamptz, settled_by = $3::text, skip_reason = $4::text
    WHERE d.delivery_id = ANY($1::bigint[]) AND d.state = 'due'
    RETURNING d.delivery_id, d.state, d.settled_at, d.settled_by
)
SELECT d.delivery_id, COALESCE(n.state, d.state)::text AS state, COALESCE(n.settled_at, d.settled_at) AS settled_at,
       COALESCE(n.settled_by, d.settled_by) AS settled_by, n.delivery_id IS NOT NULL AS is_first
FROM ledger.delivery d LEFT JOIN changed n USING (delivery_id)
WHERE d.delivery_id = ANY($1::bigint[])
