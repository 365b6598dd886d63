-- Which receipt polls a subscription or a purchase.

-- name: find_pollers
-- Polling: returns the receipt that polls each subscription and purchase, and the one that takes over if that one
-- cannot go on; locks nothing. It covers subscriptions by key ($3 apps, $4 environments, $5 ids), purchases by key ($6
-- apps, $7 environments, $8 ids, $9 products), both by row ($10 subscriptions, $11 purchases), and everything that
-- receipts $1 poll. Receipts $2 cannot go on. The newest receipt takes over; one whose answers omit the item only if
-- all do. One for which Apple vouched comes before one whose sender only points at its contents, and that one before one that no
-- customer sent (sender 2, 1, 0); it takes over from these although they can go on. This transaction settles answers about receipts $12 for subscriptions and $13 for purchases: they are no successors,
-- because their answers name what they hold. poller_omits: the last answer about the poller omitted the subscription.
WITH subscription AS MATERIALIZED (
    SELECT s.subscription_id, s.polled_by, true AS named
    FROM unnest($3::int[], $4::text[], $5::text[]) AS k(app_id, environment, original_transaction_id)
    JOIN ledger.subscription s
        ON s.app_id = k.app_id AND s.environment = k.environment::ledger.environment
       AND s.original_transaction_id = k.original_transaction_id
    UNION
    SELECT s.subscription_id, s.polled_by, false FROM ledger.subscription s
    WHERE s.polled_by = ANY($1::bigint[])
    UNION
    SELECT s.subscription_id, s.polled_by, false FROM ledger.subscription s
    WHERE s.subscription_id = ANY($10::bigint[])
), purchase AS MATERIALIZED (
    SELECT p.purchase_id, p.polled_by, true AS named
    FROM unnest($6::int[], $7::text[], $8::text[], $9::text[]) AS k(app_id, environment, original_transaction_id, product_id)
    JOIN ledger.purchase p
        ON p.app_id = k.app_id AND p.environment = k.environment::ledger.environment
       AND p.original_transaction_id = k.original_transaction_id AND p.product_id = k.product_id
    UNION
    SELECT p.purchase_id, p.polled_by, false FROM ledger.purchase p
    WHERE p.polled_by = ANY($1::bigint[])
    UNION
    SELECT p.purchase_id, p.polled_by, false FROM ledger.purchase p
    WHERE p.purchase_id = ANY($11::bigint[])
), thing AS MATERIALIZED (
    -- OFFSET 0: looked up for each thing, also by a plan that was made while the table was empty or nothing was verified.
    SELECT t.*, t.polled_by IS NOT NULL AND t.polled_by <> ALL($2::bigint[]) AND (
               t.polled_by = ANY($1::bigint[]) OR EXISTS (
                   SELECT FROM ledger.receipt r LEFT JOIN ledger.poll_schedule s USING (receipt_id)
                   WHERE r.receipt_id = t.polled_by AND ledger.can_poll(r, s)
                   OFFSET 0)) AS can_poll,
           EXISTS (
               SELECT FROM ledger.receipt_subscription l
               WHERE l.subscription_id = t.subscription_id AND l.receipt_id = t.polled_by AND l.omitted_at IS NOT NULL
               OFFSET 0) AS poller_omits,
           (SELECT CASE WHEN r.vouched OR r.form = 'signed_transaction' THEN 2
                        WHEN EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
                          OR EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id) THEN 1
                        ELSE 0 END
            FROM ledger.receipt r WHERE r.receipt_id = t.polled_by) AS sender
    FROM (
        SELECT subscription_id, NULL::bigint AS purchase_id, polled_by, bool_or(named) AS named
        FROM subscription GROUP BY subscription_id, polled_by
        UNION ALL
        SELECT NULL, purchase_id, polled_by, bool_or(named) FROM purchase GROUP BY purchase_id, polled_by) t
)
SELECT t.subscription_id, t.purchase_id, t.polled_by, t.poller_omits, t.named, successor.receipt_id AS successor,
       successor.omits AS successor_omits
FROM thing t
LEFT JOIN LATERAL (
    SELECT l.receipt_id, l.omitted_at IS NOT NULL AS omits
    FROM (
        SELECT receipt_id, omitted_at FROM ledger.receipt_subscription WHERE subscription_id = t.subscription_id
        UNION ALL
        SELECT receipt_id, omitted_at FROM ledger.receipt_purchase WHERE purchase_id = t.purchase_id) l
    JOIN ledger.receipt r USING (receipt_id)
    LEFT JOIN ledger.poll_schedule s USING (receipt_id)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN r.vouched OR r.form = 'signed_transaction' THEN 2
                    WHEN EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
                      OR EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id) THEN 1
                    ELSE 0 END AS sender) c
    WHERE (NOT t.can_poll OR t.poller_omits OR (t.polled_by = ANY($1::bigint[]) AND NOT t.named)
           OR t.sender < 2 AND c.sender > t.sender AND l.omitted_at IS NULL)
      AND l.receipt_id <> ALL($2::bigint[]) AND l.receipt_id <> ALL(CASE WHEN t.purchase_id IS NULL THEN $12::bigint[] ELSE $13::bigint[] END)
      AND l.receipt_id IS DISTINCT FROM t.polled_by AND ledger.can_poll(r, s)
      AND (r.form = 'receipt' OR EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = r.app_id))
    ORDER BY l.omitted_at IS NOT NULL, c.sender DESC, r.receipt_created_at DESC NULLS LAST, l.receipt_id DESC LIMIT 1) successor ON true

-- name: lock_schedules
-- Locks the schedule rows of receipts ($1), by receipt id, and returns them. Intake runs it for known receipts.
-- Settlements and all other changes of what receipts poll run it before they lock receipts, subscriptions or purchases.
SELECT s.receipt_id, s.confirmed_as_of, s.lane::text AS lane, s.lease_token, s.follow_ups, s.want_at IS NOT NULL AS wanted,
       s.attempts - (s.leased_by IS NOT NULL)::int AS ended_attempts,
       s.leased_by IS NOT NULL AND s.due_at > clock_timestamp() AS leased
FROM ledger.poll_schedule s
WHERE s.receipt_id = ANY($1::bigint[])
ORDER BY s.receipt_id
FOR NO KEY UPDATE

-- name: read_receipts
-- Locks receipts ($1), by receipt id, and returns their stored data; no erasure removes them before the end of the
-- transaction. Settlements and all other changes of what receipts poll run it after lock_schedules. sender: 2: Apple vouched
-- for what a customer sent; 1: a customer only points at the contents; 0: no customer sent it.
SELECT r.receipt_id, r.rejections, r.rejected_since, r.equal_empty_answers, r.observation_id, r.meaning, r.verified_at,
       r.observed_at, r.settled_token, r.erased_at IS NOT NULL AS erased, r.receipt_created_at, r.received_at,
       r.outcome IS NOT DISTINCT FROM 'rejected' AS refused, o.first_as_of AS observed_from,
       CASE WHEN r.vouched OR r.form = 'signed_transaction' THEN 2
            WHEN EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
              OR EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id) THEN 1
            ELSE 0 END::smallint AS sender
FROM ledger.receipt r
LEFT JOIN ledger.observation o ON o.observation_id = r.observation_id AND o.recorded_at = r.observed_at
WHERE r.receipt_id = ANY($1::bigint[])
ORDER BY r.receipt_id
FOR NO KEY UPDATE OF r

-- name: fold_clocks
-- Polling: moves the clocks of equal answers from the schedule rows of receipts ($1), which are locked, to what these
-- receipts poll, to the receipts, which are locked too, and to their last observations. It runs before anything else
-- reads or changes these. It may collide with a change of owners, which locks no schedule row; both are then repeated.
WITH poller AS MATERIALIZED (
    SELECT w.receipt_id, w.confirmed_at, w.confirmed_as_of, w AS schedule
    FROM ledger.poll_schedule w WHERE w.receipt_id = ANY($1::bigint[]) AND w.confirmed_at IS NOT NULL
), subscription AS MATERIALIZED (
    SELECT s.subscription_id, poller.schedule
    FROM poller JOIN ledger.subscription s ON s.polled_by = poller.receipt_id
    WHERE s.checked_at < poller.confirmed_at
    ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
    FOR NO KEY UPDATE OF s
), purchase AS MATERIALIZED (
    SELECT p.purchase_id, poller.schedule
    FROM poller JOIN ledger.purchase p ON p.polled_by = poller.receipt_id
    WHERE p.checked_at < poller.confirmed_at
    ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
    FOR NO KEY UPDATE OF p
), subscribed AS (
    UPDATE ledger.subscription s
    SET as_of = ledger.as_of(s, n.schedule), checked_at = ledger.checked_at(s, n.schedule),
        renewal_as_of = ledger.renewal_as_of(s, n.schedule), next_check_at = ledger.next_check_at(s, n.schedule)
    FROM subscription n WHERE s.subscription_id = n.subscription_id
), bought AS (
    UPDATE ledger.purchase p
    SET as_of = ledger.as_of(p, n.schedule), checked_at = ledger.checked_at(p, n.schedule),
        next_check_at = ledger.next_check_at(p, n.schedule)
    FROM purchase n WHERE p.purchase_id = n.purchase_id
), receipt AS (
    UPDATE ledger.receipt r
    SET asked_at = GREATEST(r.asked_at, poller.confirmed_at), verified_at = GREATEST(r.verified_at, poller.confirmed_at)
    FROM poller WHERE r.receipt_id = poller.receipt_id AND r.verified_at < poller.confirmed_at
)
UPDATE ledger.observation o
SET last_as_of = poller.confirmed_as_of
FROM poller JOIN ledger.receipt r USING (receipt_id)
WHERE o.observation_id = r.observation_id AND o.recorded_at = r.observed_at AND o.last_as_of < poller.confirmed_as_of

-- name: read_omissions
-- Polling: returns the subscriptions among $1 that answers left out: whether the last one about the poller did; since when
-- and how often answers that hold purchases did after the newest answer that held it; and whether no receipt can say more,
-- because each other one that Apple vouches for left it out since, and no incident of the app is running. The subscriptions are locked,
-- so that no other transaction notes or clears it meanwhile.
SELECT s.subscription_id, bool_or(l.receipt_id IS NOT DISTINCT FROM s.polled_by) AS by_poller,
       min(l.omitted_at) FILTER (WHERE l.absences > 0 AND l.omitted_at > s.checked_at) AS absent_since,
       COALESCE(sum(l.absences) FILTER (WHERE l.omitted_at > s.checked_at), 0)::int AS absences,
       NOT EXISTS (
           SELECT FROM ledger.receipt_subscription o JOIN ledger.receipt r USING (receipt_id)
           WHERE o.subscription_id = s.subscription_id AND o.receipt_id IS DISTINCT FROM s.polled_by
             AND (o.omitted_at IS NULL OR o.omitted_at <= s.checked_at)
             AND r.verified_at IS NOT NULL AND r.erased_at IS NULL AND r.rejections < 3)
       AND NOT EXISTS (
           SELECT FROM ledger.incident i WHERE i.app_id = s.app_id AND i.closed_at IS NULL) AS everywhere
FROM ledger.subscription s
JOIN ledger.receipt_subscription l USING (subscription_id)
WHERE s.subscription_id = ANY($1::bigint[]) AND l.omitted_at IS NOT NULL
GROUP BY s.subscription_id

-- name: cover
-- Polling: makes receipts ($1) due no later than $2, in lanes $3, and reschedules the unscheduled ones; their rows are
-- locked. For a leased receipt this takes effect when its lease is released. A receipt that backs off or crashes
-- workers keeps its schedule, unless it takes over ($4): then it becomes due anyway, and its next answer is read in
-- full.
WITH turn AS MATERIALIZED (
    SELECT n.receipt_id, n.due_at, n.lane, n.receipt_id = ANY($4::bigint[]) AS takes_over
    FROM unnest($1::bigint[], $2::timestamptz[], $3::text[]::ledger.lane[]) AS n(receipt_id, due_at, lane)
), change AS MATERIALIZED (
    SELECT t.*,
           s.leased_by IS NULL AND s.due_at > t.due_at AND (t.takes_over OR NOT (s.backs_off OR s.lane = 'quarantine')) AS moves,
           s.leased_by IS NOT NULL AND s.scheduled_for > t.due_at AS waits
    FROM turn t JOIN ledger.poll_schedule s USING (receipt_id)
), changed AS (
    UPDATE ledger.poll_schedule s
    SET due_at = CASE WHEN c.moves THEN c.due_at ELSE s.due_at END,
        scheduled_for = CASE WHEN c.moves THEN c.due_at ELSE s.scheduled_for END,
        lane = CASE WHEN c.moves THEN c.lane ELSE s.lane END,
        backs_off = s.backs_off AND NOT c.moves,
        want_at = CASE WHEN c.waits THEN LEAST(s.want_at, c.due_at) ELSE s.want_at END,
        fingerprint = CASE WHEN NOT c.takes_over THEN s.fingerprint END
    FROM change c
    WHERE s.receipt_id = c.receipt_id AND (c.moves OR c.waits OR c.takes_over)
)
INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
SELECT r.receipt_id, r.app_id, t.lane, t.due_at, t.due_at, r.environment IS NOT DISTINCT FROM 'Sandbox'
FROM turn t JOIN ledger.receipt r USING (receipt_id)
WHERE t.receipt_id NOT IN (SELECT receipt_id FROM change)
ORDER BY r.receipt_id
ON CONFLICT DO NOTHING

-- name: move_follow_ups
-- Polling: has receipts ($1) that took over go on with the follow-ups ($2) of those before, in a minute; the rows are locked.
UPDATE ledger.poll_schedule s
SET follow_ups = GREATEST(s.follow_ups, m.follow_ups), fingerprint = NULL,
    want_at = CASE WHEN s.leased_by IS NOT NULL THEN LEAST(s.want_at, now() + interval '1 minute') ELSE s.want_at END,
    due_at = CASE WHEN s.leased_by IS NULL THEN LEAST(s.due_at, now() + interval '1 minute') ELSE s.due_at END,
    scheduled_for = CASE WHEN s.leased_by IS NULL THEN LEAST(s.scheduled_for, now() + interval '1 minute')
                         ELSE s.scheduled_for END
FROM (SELECT n.receipt_id, max(n.follow_ups)::smallint AS follow_ups
      FROM unnest($1::bigint[], $2::int[]) AS n(receipt_id, follow_ups) GROUP BY n.receipt_id) m
WHERE s.receipt_id = m.receipt_id

-- name: write_polling
-- Polling: stores the polling receipts of subscriptions ($1 rows, $2 receipts, $3 next checks) and purchases ($4, $5
-- and $6 likewise) that have no other change.
WITH subscription AS (
    UPDATE ledger.subscription s SET polled_by = n.polled_by, next_check_at = n.next_check_at
    FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) AS n(subscription_id, polled_by, next_check_at)
    WHERE s.subscription_id = n.subscription_id
)
UPDATE ledger.purchase p SET polled_by = n.polled_by, next_check_at = n.next_check_at
FROM unnest($4::bigint[], $5::bigint[], $6::timestamptz[]) AS n(purchase_id, polled_by, next_check_at)
WHERE p.purchase_id = n.purchase_id

-- name: mark_omissions
-- Settlement: records at $1 which known contents of receipts their verified answers omitted: subscriptions of receipts $2,
-- one-time purchases of receipts $8. The answers contained subscriptions ($4) of receipts ($3) and one-time purchases ($6) of
-- receipts ($5). Those of receipts $7 hold purchases: they are counted up to three, and the first of them gives the time. An
-- answer that named a subscription since, about whatever receipt, begins the count anew.
WITH subscription AS (
    UPDATE ledger.receipt_subscription l
    SET omitted_at = CASE WHEN l.omitted_at <= s.checked_at OR l.absences = 0 AND l.receipt_id = ANY($7::bigint[])
                          THEN $1::timestamptz ELSE COALESCE(l.omitted_at, $1::timestamptz) END,
        absences = CASE WHEN l.omitted_at <= s.checked_at THEN 0 ELSE l.absences END
                 + (l.receipt_id = ANY($7::bigint[]))::int
    FROM ledger.subscription s
    WHERE l.receipt_id = ANY($2::bigint[]) AND s.subscription_id = l.subscription_id
      AND (l.omitted_at IS NULL OR l.omitted_at <= s.checked_at OR l.absences < 3 AND l.receipt_id = ANY($7::bigint[]))
      AND NOT EXISTS (
        SELECT FROM unnest($3::bigint[], $4::bigint[]) AS named(receipt_id, subscription_id)
        WHERE named.receipt_id = l.receipt_id AND named.subscription_id = l.subscription_id)
)
UPDATE ledger.receipt_purchase l SET omitted_at = $1::timestamptz
WHERE l.receipt_id = ANY($8::bigint[]) AND l.omitted_at IS NULL AND NOT EXISTS (
    SELECT FROM unnest($5::bigint[], $6::bigint[]) AS named(receipt_id, purchase_id)
    WHERE named.receipt_id = l.receipt_id AND named.purchase_id = l.purchase_id)

-- name: retire_ownerless
-- Polling: takes receipts ($1), which no customer sent, out of the schedule once other receipts poll all that they polled; their rows
-- are locked. A leased one retires with its settlement, one that took a refund back with its second answer, and one that is asked
-- because of a notification about a one-time purchase when that is answered.
DELETE FROM ledger.poll_schedule s
WHERE s.receipt_id = ANY($1::bigint[]) AND s.leased_by IS NULL
  AND NOT EXISTS (SELECT FROM ledger.subscription o WHERE o.polled_by = s.receipt_id)
  AND NOT EXISTS (SELECT FROM ledger.purchase o WHERE o.polled_by = s.receipt_id)
  AND NOT EXISTS (
      SELECT FROM ledger.receipt_purchase l JOIN ledger.purchase o USING (purchase_id)
      WHERE l.receipt_id = s.receipt_id AND l.omitted_at IS NULL AND o.facts ? 'refund_retracted_at_ms')
  AND NOT EXISTS (SELECT FROM ledger.server_question o WHERE o.receipt_id = s.receipt_id)

-- name: find_uncovered
-- Incidents: returns the subscriptions and one-time purchases that receipts $1 hold and that no receipt polls, or only
-- one that cannot go on or whose last answer left the subscription out; locks nothing.
WITH held AS (
    SELECT s.subscription_id, NULL::bigint AS purchase_id, s.polled_by
    FROM ledger.receipt_subscription l JOIN ledger.subscription s USING (subscription_id)
    WHERE l.receipt_id = ANY($1::bigint[]) AND s.version > 0
    UNION
    SELECT NULL, p.purchase_id, p.polled_by
    FROM ledger.receipt_purchase l JOIN ledger.purchase p USING (purchase_id)
    WHERE l.receipt_id = ANY($1::bigint[]) AND p.version > 0
)
SELECT h.subscription_id, h.purchase_id
FROM held h
LEFT JOIN ledger.receipt r ON r.receipt_id = h.polled_by
LEFT JOIN ledger.poll_schedule s ON s.receipt_id = h.polled_by
WHERE r.receipt_id IS NULL OR NOT ledger.can_poll(r, s) OR EXISTS (
    SELECT FROM ledger.receipt_subscription l
    WHERE l.subscription_id = h.subscription_id AND l.receipt_id = h.polled_by AND l.omitted_at IS NOT NULL
    OFFSET 0)
