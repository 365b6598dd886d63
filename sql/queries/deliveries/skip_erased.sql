-- Erase: skips what customers ($1) were still to get, at $2, and returns what it is about. What they got stays, so that
-- another upload gives nothing. Removes words of people that name one of the customers.
WITH names AS MATERIALIZED (
    SELECT lower(c.name) AS name FROM ledger.customer c WHERE c.customer_id = ANY($1::bigint[])
), reworded AS (
    UPDATE ledger.delivery d
    SET settled_by = CASE WHEN lower(d.settled_by) IN (SELECT n.name FROM names n) THEN 'erased' ELSE d.settled_by END,
        skip_reason = CASE WHEN EXISTS (SELECT FROM names n WHERE strpos(lower(d.skip_reason), n.name) > 0)
                           THEN 'erased' ELSE d.skip_reason END
    WHERE d.state <> 'due' AND d.settled_by <> 'perennial'
      AND (d.customer_id = ANY($1::bigint[])
           -- A merge or a split moved the delivery after it was skipped.
           OR d.delivery_id IN (
               SELECT (a.detail ->> 'delivery_id')::bigint FROM ledger.audit a
               WHERE a.decided_about && $1::bigint[] AND a.action = 'delivery.skipped'))
      AND EXISTS (
          SELECT FROM names n WHERE n.name = lower(d.settled_by) OR strpos(lower(d.skip_reason), n.name) > 0)
)
UPDATE ledger.delivery d
SET state = 'skipped', settled_at = $2::timestamptz, settled_by = 'perennial', skip_reason = 'erased'
WHERE d.customer_id = ANY($1::bigint[]) AND d.state = 'due'
RETURNING d.purchase_id, d.subscription_id
