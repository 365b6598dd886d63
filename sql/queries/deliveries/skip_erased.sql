-- Erase: skips what customers ($1) were still to get, at $2, and returns what it is about. What they got stays, so that
-- another upload gives nothing. Removes words of people that name one of the customers.
WITH names AS MATERIALIZED (
    SELECT lower(c.name) AS name FROM ledger.customer c WHERE c.customer_id = ANY($1::bigint[])
), meant AS MATERIALIZED (
    SELECT d.delivery_id FROM ledger.delivery d WHERE d.customer_id = ANY($1::bigint[])
    UNION
    -- A merge or a split moved the delivery after it was skipped.
    SELECT (a.detail ->> 'delivery_id')::bigint FROM ledger.audit a
    WHERE a.decided_about && $1::bigint[] AND a.action = 'delivery.skipped'
), skip_reworded AS (
    UPDATE ledger.delivery d
    SET skipped_by = CASE WHEN lower(d.skipped_by) IN (SELECT n.name FROM names n) THEN 'erased' ELSE d.skipped_by END,
        skip_reason = CASE WHEN EXISTS (SELECT FROM names n WHERE strpos(lower(d.skip_reason), n.name) > 0)
                           THEN 'erased' ELSE d.skip_reason END
    WHERE d.delivery_id IN (SELECT m.delivery_id FROM meant m) AND d.skipped_by <> 'perennial'
      AND EXISTS (
          SELECT FROM names n WHERE n.name = lower(d.skipped_by) OR strpos(lower(d.skip_reason), n.name) > 0)
), by_namesake AS (
    DELETE FROM ledger.acknowledgement k
    WHERE k.hundred IN (SELECT m.delivery_id / 100 FROM meant m)
      AND k.delivery_ids && ARRAY(SELECT m.delivery_id FROM meant m)
      AND lower(k.acknowledged_by) IN (SELECT n.name FROM names n)
    RETURNING k.*
), acknowledgement_reworded AS (
    INSERT INTO ledger.acknowledgement (hundred, delivery_ids, acknowledged_at, acknowledged_by)
    SELECT k.hundred, array_agg(i.delivery_id), k.acknowledged_at,
           CASE WHEN m.delivery_id IS NULL THEN k.acknowledged_by ELSE 'erased' END
    FROM by_namesake k CROSS JOIN unnest(k.delivery_ids) AS i(delivery_id)
    LEFT JOIN meant m ON m.delivery_id = i.delivery_id
    GROUP BY 1, 3, 4
), gone AS (
    DELETE FROM ledger.due_delivery q USING ledger.delivery d
    WHERE d.delivery_id = q.delivery_id AND d.customer_id = ANY($1::bigint[])
    RETURNING q.delivery_id
)
UPDATE ledger.delivery d SET skipped_at = $2::timestamptz, skipped_by = 'perennial', skip_reason = 'erased'
FROM gone g WHERE d.delivery_id = g.delivery_id
RETURNING d.purchase_id, d.subscription_id
