-- Deliveries: what a purchase or a period gives, and who takes it.

-- name: mark_due
-- Deliveries: marks what is due of one-time purchases ($1) and subscriptions ($2), which this transaction has locked. It
-- waits for those that are being acknowledged, and none of them is until this transaction ends.
SELECT FROM (SELECT ledger.mark_due($1::bigint[], $2::bigint[])) AS marked

-- name: read_customer_deliveries
-- Deliveries: returns those of a customer ($6, by any name) of app $1 in environment $2 after position $3, at most $4; of
-- state $5 alone, if given.
SELECT d.delivery_id, d.position, head.name AS customer, d.environment::text AS environment, d.product_id,
       d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id, d.transaction_id,
       d.original_transaction_id, d.state::text AS state, d.created_at, d.settled_at, d.settled_by, d.skip_reason
FROM ledger.delivery_now d JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE d.customer_id IN (
    SELECT n.customer_id FROM ledger.customer asked
    JOIN ledger.customer n ON COALESCE(n.merged_into, n.customer_id) = COALESCE(asked.merged_into, asked.customer_id)
     AND n.app_id = asked.app_id
    WHERE asked.app_id = $1::int AND asked.name = $6::text)
  AND d.environment = $2::text::ledger.environment AND d.position > $3::bigint
  AND ($5::text IS NULL OR d.state = $5::text::ledger.delivery_state)
ORDER BY d.position LIMIT $4::int

-- name: read_due_deliveries
-- Deliveries: returns what is due of app $1 in environment $2 after position $3, at most $4.
SELECT d.delivery_id, d.position, c.name AS customer, d.environment::text AS environment, d.product_id,
       d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id, d.transaction_id,
       d.original_transaction_id, 'due' AS state, d.created_at, NULL::timestamptz AS settled_at, NULL AS settled_by,
       NULL AS skip_reason
FROM (
    SELECT q.delivery_id, q.position FROM ledger.due_delivery q
    WHERE q.app_id = $1::int AND q.environment = $2::text::ledger.environment AND q.position > $3::bigint
    ORDER BY q.position LIMIT $4::int) q
CROSS JOIN LATERAL (SELECT d.* FROM ledger.delivery d WHERE d.delivery_id = q.delivery_id OFFSET 0) d
CROSS JOIN LATERAL (
    SELECT head.name FROM ledger.customer c
    JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
    WHERE c.customer_id = d.customer_id OFFSET 0) c
ORDER BY q.position

-- name: read_deliveries
-- Deliveries: returns those of app $1 in environment $2 after position $3, at most $4; of state $5 alone, if given.
SELECT d.delivery_id, d.position, head.name AS customer, d.environment::text AS environment, d.product_id,
       d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id, d.transaction_id,
       d.original_transaction_id, d.state::text AS state, d.created_at, d.settled_at, d.settled_by, d.skip_reason
FROM ledger.delivery_now d JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE d.app_id = $1::int AND d.environment = $2::text::ledger.environment AND d.position > $3::bigint
  AND ($5::text IS NULL OR d.state = $5::text::ledger.delivery_state)
ORDER BY d.position LIMIT $4::int

-- name: read_delivery
-- Deliveries: returns delivery $1 with its app and the key of its customer.
SELECT d.delivery_id, d.position, head.name AS customer, d.environment::text AS environment, d.product_id,
       d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id, d.transaction_id,
       d.original_transaction_id, d.state::text AS state, d.created_at, d.settled_at, d.settled_by, d.skip_reason,
       a.bundle_id, d.customer_id
FROM ledger.delivery_now d JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
JOIN ledger.app a ON a.app_id = d.app_id
WHERE d.delivery_id = $1::bigint

-- name: is_queue_behind
-- Deliveries: returns whether a committed delivery has no position yet.
SELECT EXISTS (SELECT FROM ledger.delivery d WHERE d.position IS NULL) AS is_behind

-- name: lock_queue
-- Deliveries: locks the queue, so that one transaction gives positions at a time; returns whether a delivery waits.
SELECT EXISTS (SELECT FROM ledger.delivery d WHERE d.position IS NULL) AS is_behind
FROM ledger.delivery_queue q FOR NO KEY UPDATE OF q

-- name: place_deliveries
-- Deliveries: gives committed deliveries their positions, at most $1; this transaction has the queue's lock.
SELECT FROM (SELECT ledger.place_deliveries($1::int)) AS placed

-- name: count_due_deliveries
-- Deliveries: counts those of each app (of app $1 alone, if given) in environment $2 that have been due for more than $3
-- seconds, up to $4 of an app; also since when the oldest of these is due. The last ones may have no position yet.
SELECT a.bundle_id, count(*) AS deliveries, min(d.created_at) AS oldest_at,
       EXTRACT(epoch FROM now() - min(d.created_at))::float8 AS seconds
FROM ledger.app a
CROSS JOIN LATERAL (
    SELECT d.created_at
    FROM (SELECT q.delivery_id FROM ledger.due_delivery q
          WHERE q.app_id = a.app_id AND q.environment = $2::text::ledger.environment
          ORDER BY q.position LIMIT $4::int) q
    JOIN ledger.delivery d USING (delivery_id)) d
WHERE ($1::text IS NULL OR a.bundle_id = $1::text) AND d.created_at <= now() - make_interval(secs => $3::float8)
GROUP BY a.bundle_id ORDER BY a.bundle_id

-- name: take_release
-- Deliveries: locks a product whose earlier purchases a catalog released, if another transaction does not work on it.
SELECT r.app_id, r.product_id, r.after_purchase, r.after_subscription FROM ledger.delivery_release r
ORDER BY r.app_id, r.product_id LIMIT 1 FOR UPDATE SKIP LOCKED

-- name: share_released_purchases
-- Deliveries: the next purchases of product $2 of app $1 after $3, at most $4, kept from settlements until this
-- transaction ends. The index is of an expression, so that no lookup of one purchase takes it: to PostgreSQL a product is
-- rare until its purchases are analysed.
SELECT p.purchase_id FROM ledger.purchase p
WHERE p.purchase_id IN (
    SELECT n.purchase_id FROM ledger.purchase n
    WHERE n.app_id::bigint = $1::int AND n.product_id = $2::text AND n.purchase_id > $3::bigint
      AND n.purchased_at IS NOT NULL
    ORDER BY n.purchase_id LIMIT $4::int)
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR SHARE

-- name: share_released_subscriptions
-- Deliveries: the next subscriptions of app $1 after $2, at most $3, kept from settlements until this transaction ends.
SELECT s.subscription_id FROM ledger.subscription s
WHERE s.subscription_id IN (
    SELECT n.subscription_id FROM ledger.subscription n
    WHERE n.subscription_id > $2::bigint AND n.app_id = $1::int
    ORDER BY n.subscription_id LIMIT $3::int)
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR SHARE

-- name: store_turns
-- Deliveries: stores the turns that one-time purchases ($1) and subscriptions ($2) need now; this transaction has them
-- locked.
SELECT ledger.store_turns($1::bigint[], $2::bigint[]) AS turns

-- name: advance_release
-- Deliveries: records how far the release of product $2 of app $1 is ($3 purchases, $4 subscriptions), or its end.
WITH ended AS (
    DELETE FROM ledger.delivery_release r
    WHERE r.app_id = $1::int AND r.product_id = $2::text AND num_nonnulls($3::bigint, $4::bigint) = 0
)
UPDATE ledger.delivery_release r SET after_purchase = $3::bigint, after_subscription = $4::bigint
WHERE r.app_id = $1::int AND r.product_id = $2::text AND num_nonnulls($3::bigint, $4::bigint) > 0

-- name: acknowledge_unchanged
-- Deliveries: acknowledges by $3 those due deliveries ($2) of the app named $1 from which nothing follows, and returns these.
SELECT delivery_ids, acknowledged_at FROM ledger.acknowledge_unchanged($1::text, $2::bigint[], $3::text)

-- name: settle_deliveries
-- Deliveries: makes due deliveries ($2) of app $1 acknowledged by $3, or skipped if there is a reason ($4), and stores what
-- follows. Returns all that exist of $2 with their state; is_first marks those that changed.
SELECT delivery_id, state, settled_at, settled_by, is_first
FROM ledger.settle_deliveries($1::int, $2::bigint[], $3::text, $4::text)

-- name: hand_over_due
-- Deliveries: purchases ($1) and subscriptions ($2) belong to new owners ($3): what is still to be given to another customer is
-- skipped, and becomes due to this one under an id of its own; what is for an order of the other one only where $4 says so. A
-- part that a refund took stays with the customer who has the rest.
WITH claimed AS MATERIALIZED (
    SELECT n.*
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[])
        AS n(purchase_id, subscription_id, customer_id, takes_ordered)
), gone AS (
    DELETE FROM ledger.due_delivery q USING ledger.delivery d, claimed n
    WHERE d.delivery_id = q.delivery_id AND d.turn % 2 = 1 AND NOT ledger.returns_part(d.purchase_id, d.turn)
      AND NOT ledger.is_same_customer(d.customer_id, n.customer_id)
      AND (n.takes_ordered OR d.order_id IS NULL)
      AND (d.purchase_id = n.purchase_id OR d.subscription_id = n.subscription_id)
    RETURNING d.*, n.customer_id AS claimer_id
), skipped AS (
    UPDATE ledger.delivery d
    SET skipped_at = clock_timestamp(), skipped_by = 'perennial', skip_reason = 'claimed_by_order'
    FROM gone g WHERE d.delivery_id = g.delivery_id
), turn AS (
    SELECT g.*, g.customer_id AS given_to, g.turn + 1 AS next_turn, 'transfer' AS next_reason, NULL::uuid AS paid_order
    FROM gone g
    UNION ALL
    SELECT g.*, g.claimer_id, g.turn + 2, g.reason, o.order_id
    FROM gone g
    LEFT JOIN ledger.purchase_order o
      ON (o.purchase_id = g.purchase_id OR (o.subscription_id = g.subscription_id AND o.period_id = g.period_id))
     AND ledger.is_same_customer(o.customer_id, g.claimer_id)
), stored AS (
    INSERT INTO ledger.delivery (
        app_id, environment, customer_id, product_id, kind, credit, units, turn, reason, order_id, purchase_id,
        subscription_id, period_id, transaction_id, original_transaction_id, skipped_at, skipped_by, skip_reason)
    SELECT t.app_id, t.environment, t.given_to, t.product_id, t.kind, t.credit, t.units, t.next_turn, t.next_reason,
           t.paid_order, t.purchase_id, t.subscription_id, t.period_id, t.transaction_id, t.original_transaction_id,
           CASE WHEN t.next_turn % 2 = 0 THEN clock_timestamp() END, CASE WHEN t.next_turn % 2 = 0 THEN 'perennial' END,
           CASE WHEN t.next_turn % 2 = 0 THEN 'claimed_by_order' END
    FROM turn t
    ORDER BY t.delivery_id, t.next_turn
    RETURNING delivery_id, app_id, environment, order_id, skip_reason
)
INSERT INTO ledger.due_delivery (delivery_id, app_id, environment, order_id)
SELECT s.delivery_id, s.app_id, s.environment, s.order_id FROM stored s WHERE s.skip_reason IS NULL

-- name: give_skipped
-- Deliveries: orders ($1) are paid. Where the last turn of what pays one was to give it to another customer, and was skipped,
-- no customer was given it: it becomes due to the order's customer by the next odd turn.
WITH skipped AS MATERIALIZED (
    SELECT d.*, r.order_id AS paid_order, r.customer_id AS payer_id
    FROM unnest($1::text[]) AS n(id)
    CROSS JOIN LATERAL (
        SELECT r.order_id, r.purchase_id, r.subscription_id, r.period_id,
               COALESCE(c.merged_into, c.customer_id) AS customer_id
        FROM ledger.purchase_order r JOIN ledger.customer c USING (customer_id) WHERE r.order_id = n.id::uuid OFFSET 0) r
    CROSS JOIN LATERAL (
        SELECT l.*
        FROM (
            SELECT l.* FROM ledger.delivery l WHERE l.purchase_id = r.purchase_id
            UNION ALL
            SELECT l.* FROM ledger.delivery l
            WHERE l.subscription_id = r.subscription_id AND l.period_id = r.period_id) l
        ORDER BY l.turn DESC LIMIT 1) d
    JOIN ledger.customer c ON c.customer_id = d.customer_id
    WHERE d.turn % 2 = 1 AND d.skip_reason IS NOT NULL AND NOT ledger.returns_part(d.purchase_id, d.turn)
      AND COALESCE(c.merged_into, c.customer_id) <> r.customer_id
), stored AS (
    INSERT INTO ledger.delivery (
        app_id, environment, customer_id, product_id, kind, credit, units, turn, reason, order_id, purchase_id,
        subscription_id, period_id, transaction_id, original_transaction_id, skipped_at, skipped_by, skip_reason)
    SELECT s.app_id, s.environment, t.customer_id, s.product_id, s.kind, s.credit, s.units, s.turn + t.later, t.reason,
           t.order_id, s.purchase_id, s.subscription_id, s.period_id, s.transaction_id, s.original_transaction_id,
           t.skipped_at, t.skipped_by, t.skip_reason
    FROM skipped s
    CROSS JOIN LATERAL (VALUES
        (1, s.customer_id, 'transfer', NULL::uuid, clock_timestamp(), 'perennial', 'claimed_by_order'),
        (2, s.payer_id, s.reason, s.paid_order, NULL, NULL, NULL))
        AS t(later, customer_id, reason, order_id, skipped_at, skipped_by, skip_reason)
    ORDER BY s.delivery_id, t.later
    RETURNING delivery_id, app_id, environment, order_id, skip_reason
)
INSERT INTO ledger.due_delivery (delivery_id, app_id, environment, order_id)
SELECT s.delivery_id, s.app_id, s.environment, s.order_id FROM stored s WHERE s.skip_reason IS NULL

-- name: move_deliveries
-- Merge: moves what was delivered of one-time purchases ($1) and of subscriptions ($2) from customers ($3) to customer $4,
-- without a turn.
UPDATE ledger.delivery d SET customer_id = $4::bigint
WHERE (d.purchase_id = ANY($1::bigint[]) OR d.subscription_id = ANY($2::bigint[]))
  AND d.customer_id = ANY($3::bigint[])

-- name: split_deliveries
-- Split: moves deliveries of customers ($3) to customer $4 without a turn: what is still to be given of one-time purchases ($1)
-- and of subscriptions ($2), and all that was given to one of the names $5. What another name was given stays. The turns up
-- to the next one that gives all go with the turn that gave it.
WITH turn AS MATERIALIZED (
    SELECT d.delivery_id, d.turn, d.state, d.settled_at, d.purchase_id, d.subscription_id,
           first_value(d.delivery_id) OVER (PARTITION BY d.purchase_id, d.period_id, d.giving ORDER BY d.turn) AS first_id
    FROM (
        SELECT d.*, count(*) FILTER (WHERE d.turn % 2 = 1 AND NOT ledger.returns_part(d.purchase_id, d.turn))
                        OVER (PARTITION BY d.purchase_id, d.period_id ORDER BY d.turn) AS giving
        FROM ledger.delivery_now d WHERE d.customer_id = ANY($3::bigint[])) d
)
UPDATE ledger.delivery d SET customer_id = $4::bigint
FROM turn t JOIN turn g ON g.delivery_id = t.first_id AND g.turn % 2 = 1
WHERE d.delivery_id = t.delivery_id
  AND CASE g.state WHEN 'acknowledged'
      THEN EXISTS (
          SELECT FROM ledger.ownership w
          WHERE (w.purchase_id = g.purchase_id OR w.subscription_id = g.subscription_id)
            AND upper_inf(w.known) AND w.valid @> g.settled_at AND w.customer_id = ANY($5::bigint[]))
      ELSE g.purchase_id = ANY($1::bigint[]) OR g.subscription_id = ANY($2::bigint[]) END

-- name: skip_erased
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
UPDATE ledger.delivery d
SET skipped_at = $2::timestamptz, skipped_by = 'perennial', skip_reason = 'erased',
    order_id = (SELECT o.order_id FROM ledger.purchase_order o WHERE o.order_id = d.order_id AND o.paid_at IS NOT NULL)
FROM gone g WHERE d.delivery_id = g.delivery_id
RETURNING d.purchase_id, d.subscription_id

-- name: find_owners_of_erased
-- Erase: returns the purchases that customers ($1) were still to get and that another customer owns by now, with this one.
SELECT d.purchase_id, o.customer_id
FROM ledger.delivery d
JOIN ledger.due_delivery q USING (delivery_id)
JOIN ledger.ownership o ON o.purchase_id = d.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid)
WHERE d.customer_id = ANY($1::bigint[]) AND d.turn % 2 = 1 AND d.kind = 'non_consumable'
  AND o.customer_id <> ALL($1::bigint[]) AND o.cause IS DISTINCT FROM 'pointer'
ORDER BY d.purchase_id

-- name: share_delivered
-- Deliveries: keeps settlements from changing one-time purchases ($1) and subscriptions ($2) until this transaction ends.
SELECT FROM (SELECT ledger.share_delivered($1::bigint[], $2::bigint[])) AS shared

-- name: read_newest_deliveries
-- Deliveries: returns those of customers ($1), newest first, at most $2.
SELECT d.delivery_id, d.position, head.name AS customer, d.environment::text AS environment, d.product_id,
       d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id, d.transaction_id,
       d.original_transaction_id, d.state::text AS state, d.created_at, d.settled_at, d.settled_by, d.skip_reason
FROM ledger.delivery_now d JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE d.customer_id = ANY($1::bigint[])
ORDER BY d.delivery_id DESC LIMIT $2::int

-- name: read_balances
-- Deliveries: returns what acknowledged deliveries gave customers ($1) of each credit, less what they took back.
SELECT d.credit, d.environment::text AS environment,
       sum(CASE WHEN d.turn % 2 = 1 THEN d.units ELSE -d.units END)::bigint AS units
FROM ledger.delivery d
WHERE d.customer_id = ANY($1::bigint[]) AND d.credit IS NOT NULL AND d.skip_reason IS NULL
  AND NOT EXISTS (SELECT FROM ledger.due_delivery q WHERE q.delivery_id = d.delivery_id)
GROUP BY d.credit, d.environment
ORDER BY d.environment, d.credit

-- name: request_release
-- Catalog: has workers deliver what the catalog of app $1 releases of what was bought before.
INSERT INTO ledger.delivery_release (app_id, product_id, after_purchase, after_subscription)
SELECT $1::int, p.product_id, CASE WHEN p.kind <> 'auto_renewable' THEN 0 END, CASE WHEN p.kind = 'auto_renewable' THEN 0 END
FROM ledger.product p
WHERE p.app_id = $1::int AND p.kind IS NOT NULL
ON CONFLICT (app_id, product_id) DO UPDATE
SET after_purchase = EXCLUDED.after_purchase, after_subscription = EXCLUDED.after_subscription
