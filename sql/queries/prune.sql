-- What is deleted after its time.

-- name: drop_empty_months
-- Prune: drops the partition of one month before $1 that has no answers left; 0 when there is none, or it is being
-- read.
SELECT ledger.drop_empty_observation_months($1::timestamptz) AS months

-- name: delete_audit
-- Prune: deletes audit rows written before $1, at most $2, oldest first.
DELETE FROM ledger.audit a
WHERE a.audit_id IN (
    SELECT n.audit_id FROM ledger.audit n WHERE n.happened_at < $1::timestamptz ORDER BY n.audit_id LIMIT $2::int)

-- name: find_prunable
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

-- name: read_held
-- Prune: returns the contents of the receipts ($1): subscriptions first, then one-time purchases.
SELECT l.receipt_id, s.subscription_id, NULL::bigint AS purchase_id, s.app_id, s.environment::text AS environment,
       s.original_transaction_id, NULL::text AS product_id, s.polled_by, ledger.as_of(s, poller) AS as_of
FROM ledger.receipt_subscription l JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
WHERE l.receipt_id = ANY($1::bigint[]) AND s.version > 0
UNION ALL
SELECT l.receipt_id, NULL, p.purchase_id, p.app_id, p.environment::text, p.original_transaction_id, p.product_id,
       p.polled_by, ledger.as_of(p, poller)
FROM ledger.receipt_purchase l JOIN ledger.purchase p USING (purchase_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
WHERE l.receipt_id = ANY($1::bigint[]) AND p.version > 0
ORDER BY 1, 2, 3

-- name: delete_observations
-- Prune: deletes the answers $1, recorded before $2, and stores their earliest time for each receipt. Returns how many
-- it deleted: those that another prune deletes meanwhile are not among them.
WITH gone AS (
    DELETE FROM ledger.observation o
    WHERE o.observation_id = ANY($1::bigint[]) AND o.recorded_at < $2::timestamptz
    RETURNING o.receipt_id, o.first_as_of
), noted AS (
    INSERT INTO ledger.pruned_receipt AS p (receipt_id, answers, first_as_of, pruned_at)
    SELECT g.receipt_id, count(*), min(g.first_as_of), now() FROM gone g GROUP BY g.receipt_id
    ON CONFLICT (receipt_id) DO UPDATE SET
        answers = p.answers + EXCLUDED.answers, first_as_of = LEAST(p.first_as_of, EXCLUDED.first_as_of),
        pruned_at = EXCLUDED.pruned_at
)
SELECT count(*) AS answers FROM gone

-- name: find_reducible_notifications
-- Prune: locks and returns notifications after $1 that came before $2, have their texts; at most $3.
-- `counts`: their details are part of the ledger, or may become part of it.
SELECT n.notification_id, n.environment::text AS environment, n.texts, n.claims::text AS claims, n.effect NOT IN ('no_facts', 'unshown') OR n.price_taken AS counts
FROM ledger.notification n
WHERE n.notification_id > $1::bigint AND n.received_at < $2::timestamptz AND n.texts IS NOT NULL
ORDER BY n.notification_id LIMIT $3::int
FOR UPDATE

-- name: write_reduced_notifications
-- Prune: keeps of notifications ($1) their claims ($2) in place of their texts.
UPDATE ledger.notification n SET texts = NULL, claims = r.claims
FROM unnest($1::bigint[], $2::text[]::json[]) AS r(notification_id, claims)
WHERE n.notification_id = r.notification_id

-- name: find_reducible_answers
-- Prune: locks and returns verified answers of the Server API after $1 that were recorded before $2 and have their texts; at
-- most $3.
SELECT o.observation_id, o.receipt_id, a.bundle_id, o.environment::text AS environment, o.first_as_of, o.last_as_of, o.body
FROM ledger.observation o JOIN ledger.app a USING (app_id)
WHERE o.observation_id > $1::bigint AND o.recorded_at < $2::timestamptz AND o.outcome = 'verified' AND NOT o.reduced
  AND o.environment IS NOT NULL AND substring(o.body FROM 1 FOR 8) = convert_to('{"asked"', 'UTF8')
ORDER BY o.observation_id LIMIT $3::int
FOR UPDATE OF o

-- name: write_reduced_answers
-- Prune: stores reduced bodies ($2) of the answers $1, recorded before $3.
UPDATE ledger.observation o SET body = r.body, reduced = true
FROM unnest($1::bigint[], $2::bytea[]) AS r(observation_id, body)
WHERE o.observation_id = r.observation_id AND o.recorded_at < $3::timestamptz
