-- Verification: what violates an invariant in a slice of keys.

-- name: verify_coverage
-- Verify: returns what needs a check, after key $1 up to $2, but whose polling receipt cannot vouch or is scheduled
-- more than $3 seconds later; one-time purchases if $4, else subscriptions. Exceptions: the schedule of a leased receipt
-- is the one before its claim or a wish since then, one whose last answer was not verified backs off, and one in
-- quarantine keeps its schedule. While an app is paused, nothing is late. What no receipt polls is taken up by a check that is due
-- or under way.
WITH asked AS MATERIALIZED (
    SELECT n.app_id, n.environment, n.original_transaction_id FROM ledger.notification n
    WHERE n.effect = 'asked'
      AND NOT EXISTS (SELECT FROM ledger.server_question q WHERE q.notification_id = n.notification_id)
), polled AS (
    SELECT s.subscription_id AS key, s.app_id, s.environment, s.original_transaction_id, NULL AS product_id, s.polled_by,
           ledger.next_check_at(s, poller) AS next_check_at
    FROM ledger.subscription s LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
    WHERE NOT $4::boolean AND s.subscription_id > $1::bigint AND s.subscription_id <= $2::bigint AND s.version > 0
      AND (s.next_check_at IS NOT NULL
        OR s.polled_by IS NOT NULL AND (s.app_id, s.environment, s.original_transaction_id) IN (SELECT * FROM asked))
    UNION ALL
    SELECT p.purchase_id, p.app_id, p.environment, p.original_transaction_id, p.product_id, p.polled_by,
           ledger.next_check_at(p, poller)
    FROM ledger.purchase p LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
    WHERE $4::boolean AND p.purchase_id > $1::bigint AND p.purchase_id <= $2::bigint AND p.version > 0
      AND (p.next_check_at IS NOT NULL
        OR p.polled_by IS NOT NULL AND (p.app_id, p.environment, p.original_transaction_id) IN (SELECT * FROM asked)
        OR p.polled_by IS NULL AND EXISTS (
            SELECT FROM ledger.receipt_purchase l JOIN ledger.receipt o USING (receipt_id)
            LEFT JOIN ledger.poll_schedule q USING (receipt_id)
            WHERE l.purchase_id = p.purchase_id AND l.omitted_at IS NULL AND ledger.could_poll(o, q)))
), holder AS NOT MATERIALIZED (
    SELECT l.subscription_id AS key, l.receipt_id, l.omitted_at FROM ledger.receipt_subscription l WHERE NOT $4::boolean
    UNION ALL
    SELECT l.purchase_id, l.receipt_id, l.omitted_at FROM ledger.receipt_purchase l WHERE $4::boolean
)
SELECT w.key, a.bundle_id, w.environment::text AS environment, w.original_transaction_id, w.product_id,
       w.polled_by AS receipt_id, trouble.detail
FROM (SELECT p.*, EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = p.app_id) AS has_key FROM polled p) w
JOIN ledger.app a USING (app_id)
JOIN ledger.app_budget b USING (app_id)
CROSS JOIN ledger.apple_breaker g
LEFT JOIN ledger.receipt r ON r.receipt_id = w.polled_by
LEFT JOIN ledger.poll_schedule p ON p.receipt_id = w.polled_by
CROSS JOIN LATERAL (
    SELECT CASE WHEN p.leased_by IS NULL THEN p.due_at ELSE LEAST(p.want_at, p.scheduled_for) END AS at) schedule
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN w.polled_by IS NULL AND $4::boolean THEN 'no receipt is asked about it, and one could be'
        WHEN r.erased_at IS NOT NULL THEN 'its polling receipt was erased'
        WHEN r.verified_at IS NULL THEN 'Apple never vouched for its polling receipt'
        WHEN NOT EXISTS (SELECT FROM holder h WHERE h.key = w.key AND h.receipt_id = w.polled_by)
            THEN 'its polling receipt does not hold it'
        WHEN p.leased_by IS NULL
         AND EXISTS (SELECT FROM holder h WHERE h.key = w.key AND h.receipt_id = w.polled_by AND h.omitted_at IS NOT NULL)
         AND EXISTS (
            SELECT FROM holder h JOIN ledger.receipt o USING (receipt_id) LEFT JOIN ledger.poll_schedule q USING (receipt_id)
            WHERE h.key = w.key AND h.omitted_at IS NULL AND ledger.can_poll(o, q) AND (o.form = 'receipt' OR w.has_key))
            THEN 'its polling receipt leaves it out and another one does not'
        WHEN p.leased_by IS NULL AND NOT ledger.can_poll(r, p) AND EXISTS (
            SELECT FROM holder h JOIN ledger.receipt o USING (receipt_id) LEFT JOIN ledger.poll_schedule q USING (receipt_id)
            WHERE h.key = w.key AND h.omitted_at IS NULL AND ledger.can_poll(o, q) AND (o.form = 'receipt' OR w.has_key))
            THEN format('its polling receipt cannot go on (%s) and another one can', CASE
                WHEN r.rejections > 0 THEN 'Apple refused it' WHEN p.lane = 'quarantine' THEN 'it crashes workers'
                ELSE p.attempts || ' calls brought no answer' END)
        WHEN p.receipt_id IS NULL THEN 'its polling receipt is not scheduled'
        WHEN p.follow_ups = 0 AND p.leased_by IS NULL
         AND (w.app_id, w.environment, w.original_transaction_id) IN (SELECT * FROM asked)
            THEN 'a notification about it waits for an answer, and no follow-up is planned'
        WHEN p.backs_off OR p.lane = 'quarantine' OR w.next_check_at IS NULL THEN NULL
        WHEN schedule.at > GREATEST(w.next_check_at, now(), b.paused_until, g.paused_until)
                + make_interval(secs => $3::float8)
            THEN format('its polling receipt is asked about at %s UTC, the check is wanted at %s UTC',
                        date_trunc('second', schedule.at AT TIME ZONE 'UTC'),
                        date_trunc('second', w.next_check_at AT TIME ZONE 'UTC'))
        END AS detail) trouble
WHERE trouble.detail IS NOT NULL
ORDER BY w.key

-- name: verify_timeline
-- Verify: returns subscriptions after $1 up to $2 whose present timeline does not reach from their first period to
-- infinity without a gap or an overlap.
SELECT s.subscription_id AS key, a.bundle_id, s.environment::text AS environment, s.original_transaction_id,
       NULL AS product_id, NULL::bigint AS receipt_id,
       CASE WHEN t.spans = 0 THEN 'it has no present timeline'
            WHEN t.begins > s.started_at THEN 'its timeline begins after its first period'
            WHEN NOT t.is_endless THEN 'its timeline ends'
            ELSE 'its timeline has a gap or an overlap' END AS detail
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
CROSS JOIN LATERAL (
    SELECT count(*) AS spans, min(lower(o.valid)) AS begins, COALESCE(bool_or(upper_inf(o.valid)), false) AS is_endless,
           count(*) FILTER (WHERE lower(o.valid) IS DISTINCT FROM o.ended AND o.place > 1) AS tears
    FROM (
        SELECT p.valid, lag(upper(p.valid)) OVER spans AS ended, row_number() OVER spans AS place
        FROM ledger.subscription_span p
        WHERE p.subscription_id = s.subscription_id AND upper_inf(p.known)
        WINDOW spans AS (ORDER BY lower(p.valid))) o) t
WHERE s.subscription_id > $1::bigint AND s.subscription_id <= $2::bigint AND s.version > 0
  AND (t.spans = 0 OR t.begins > s.started_at OR NOT t.is_endless OR t.tears > 0)
ORDER BY s.subscription_id

-- name: verify_scheduled
-- Verify: returns unscheduled receipts after $1 up to $2 for which Apple's last answer was not usable, or none ever
-- was. Those that notifications made wait for a server key, and leave the schedule once other receipts poll what they are about.
WITH ownerless AS MATERIALIZED (
    SELECT r.receipt_id, r.app_id, r.transaction_id
    FROM ledger.receipt r
    WHERE r.receipt_id > $1::bigint AND r.receipt_id <= $2::bigint AND r.form = 'transaction_id'
      AND NOT EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
      AND NOT EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id)
), needed AS MATERIALIZED (
    SELECT o.receipt_id
    FROM ownerless o JOIN ledger.server_key k USING (app_id)
    WHERE EXISTS (SELECT FROM ledger.subscription s WHERE s.polled_by = o.receipt_id)
       OR EXISTS (SELECT FROM ledger.purchase p WHERE p.polled_by = o.receipt_id)
       OR EXISTS (
            SELECT FROM ledger.notification n
            WHERE n.app_id = o.app_id AND n.effect = 'asked'
              AND COALESCE(n.transaction_id, n.original_transaction_id) = o.transaction_id
              AND NOT EXISTS (
                  SELECT FROM ledger.subscription s
                  WHERE s.app_id = n.app_id AND s.environment = n.environment
                    AND s.original_transaction_id = n.original_transaction_id AND s.polled_by IS NOT NULL)
              AND NOT EXISTS (
                  SELECT FROM ledger.purchase p
                  WHERE p.app_id = n.app_id AND p.environment = n.environment
                    AND p.original_transaction_id = n.original_transaction_id AND p.polled_by IS NOT NULL))
)
SELECT r.receipt_id AS key, a.bundle_id, r.environment::text AS environment, NULL AS original_transaction_id,
       NULL AS product_id, r.receipt_id,
       CASE WHEN r.asked_at IS NULL THEN 'Apple was never asked about it, and it is not scheduled'
            ELSE 'the last answer about it was none, and it is not scheduled' END AS detail
FROM ledger.receipt r
JOIN ledger.app a USING (app_id)
WHERE r.receipt_id > $1::bigint AND r.receipt_id <= $2::bigint AND r.erased_at IS NULL
  AND COALESCE(r.outcome, 'indeterminate') = 'indeterminate'
  AND NOT EXISTS (SELECT FROM ledger.poll_schedule p WHERE p.receipt_id = r.receipt_id)
  AND (r.receipt_id NOT IN (SELECT receipt_id FROM ownerless) OR r.receipt_id IN (SELECT receipt_id FROM needed))
ORDER BY r.receipt_id

-- name: verify_wanted
-- Verify: returns receipts after $1 up to $2 whose requested check is late by more than their lease of $3 seconds,
-- which is longer after crashes. A receipt in quarantine keeps its schedule.
SELECT p.receipt_id AS key, a.bundle_id, r.environment::text AS environment, NULL AS original_transaction_id,
       NULL AS product_id, p.receipt_id,
       format('a check was wanted by %s UTC', date_trunc('second', p.want_at AT TIME ZONE 'UTC')) AS detail
FROM ledger.poll_schedule p
JOIN ledger.receipt r USING (receipt_id)
JOIN ledger.app a ON a.app_id = p.app_id
LEFT JOIN ledger.worker w ON w.worker_id = p.leased_by
WHERE p.receipt_id > $1::bigint AND p.receipt_id <= $2::bigint AND p.lane <> 'quarantine'
  AND p.want_at < now() - make_interval(
      secs => COALESCE(w.lease_seconds, $3::float8) * (1 << LEAST(p.crashes, 6)))
ORDER BY p.receipt_id

-- name: verify_leases
-- Verify: returns receipts after $1 up to $2 leased for longer than their worker's lease, extended after crashes; see
-- claim.
SELECT p.receipt_id AS key, a.bundle_id, r.environment::text AS environment, NULL AS original_transaction_id,
       NULL AS product_id, p.receipt_id,
       format('worker %s has it until %s UTC, longer than its lease of %s s after %s crashes', p.leased_by,
              date_trunc('second', p.due_at AT TIME ZONE 'UTC'), w.lease_seconds, p.crashes) AS detail
FROM ledger.poll_schedule p
JOIN ledger.receipt r USING (receipt_id)
JOIN ledger.app a ON a.app_id = p.app_id
JOIN ledger.worker w ON w.worker_id = p.leased_by
WHERE p.receipt_id > $1::bigint AND p.receipt_id <= $2::bigint
  AND p.due_at > now() + make_interval(
      secs => w.lease_seconds * (1 << LEAST(p.crashes, CASE p.lane WHEN 'quarantine' THEN 10 ELSE 6 END)) + 1)
ORDER BY p.receipt_id

-- name: verify_ownership
-- Verify: returns present ownerships after $1 up to $2 that conflict with another: two customers own the same item at
-- one time, or one who only pointed at it keeps it from another one who showed it later.
SELECT o.ownership_id AS key, a.bundle_id, COALESCE(s.environment, p.environment)::text AS environment,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id,
       p.product_id, trouble.receipt_id, trouble.detail
FROM ledger.ownership o
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id)
JOIN ledger.app a ON a.app_id = COALESCE(s.app_id, p.app_id)
CROSS JOIN LATERAL (
    SELECT NULL::bigint AS receipt_id, 'two customers own it at the same time' AS detail
    WHERE EXISTS (
            SELECT FROM ledger.ownership x
            WHERE x.subscription_id = o.subscription_id AND x.ownership_id <> o.ownership_id AND upper_inf(x.known)
              AND x.valid && o.valid)
       OR EXISTS (
            SELECT FROM ledger.ownership x
            WHERE x.purchase_id = o.purchase_id AND x.ownership_id <> o.ownership_id AND upper_inf(x.known)
              AND x.valid && o.valid)
    UNION ALL
    SELECT min(r.receipt_id), 'its owner only pointed at it, and another customer showed it later'
    FROM (SELECT l.receipt_id FROM ledger.receipt_subscription l WHERE l.subscription_id = o.subscription_id
          UNION ALL
          SELECT l.receipt_id FROM ledger.receipt_purchase l WHERE l.purchase_id = o.purchase_id) l
    JOIN ledger.receipt r ON r.receipt_id = l.receipt_id AND (r.vouched OR r.form = 'signed_transaction')
    JOIN ledger.upload u ON u.receipt_id = l.receipt_id
    WHERE o.cause = 'pointer' AND upper_inf(o.valid) AND u.settled AND u.customer_id <> o.customer_id
      AND u.uploaded_at > lower(o.known)
    HAVING count(*) > 0) trouble
WHERE o.ownership_id > $1::bigint AND o.ownership_id <= $2::bigint AND upper_inf(o.known)
ORDER BY o.ownership_id

-- name: verify_entitlements
-- Verify: returns customers after $1 up to $2 about whom something else is stored than their sources give from now on, or
-- nothing. A merged name has nothing of its own. It names them by key, because workers log it.
SELECT d.customer_id AS key, a.bundle_id, NULL AS environment, NULL AS original_transaction_id, NULL AS product_id,
       NULL::bigint AS receipt_id,
       format('what is stored of %s for the customer with the key %s is not what its sources give',
              min(d.entitlement COLLATE "C"), d.customer_id) AS detail
FROM ledger.entitlement_differences(ARRAY(
    SELECT n.customer_id FROM ledger.customer n WHERE n.customer_id > $1::bigint AND n.customer_id <= $2::bigint)) d
JOIN ledger.customer c USING (customer_id)
JOIN ledger.app a USING (app_id)
GROUP BY d.customer_id, a.bundle_id
ORDER BY d.customer_id

-- name: verify_purchase_deliveries
-- Verify: returns purchases after $1 up to $2 that need a turn of delivery that is not stored, unless a worker has yet
-- to come to it among what a catalog released, those with a delivery in no state or in two,
-- and those with a turn whose units or customer differ from what a settlement writes.
WITH seen AS MATERIALIZED (
    SELECT COALESCE(array_agg(i.purchase_id), '{}') AS ids FROM ledger.purchase i
    WHERE i.purchase_id > $1::bigint AND i.purchase_id <= $2::bigint AND i.version > 0
-- Materialised, so that each rule is computed once for all: a plan for stale statistics would do it for each purchase.
), turn AS MATERIALIZED (
    SELECT t.* FROM seen n CROSS JOIN LATERAL ledger.next_turns(n.ids, '{}') t
), doubtful AS MATERIALIZED (
    SELECT d.* FROM seen n CROSS JOIN LATERAL ledger.deliveries_in_doubt(n.ids, '{}') d
)
SELECT (t.thing).purchase_id AS key, a.bundle_id, (t.thing).environment::text AS environment,
       (t.thing).original_transaction_id, (t.thing).product_id AS product_id, NULL::bigint AS receipt_id,
       format('turn %s (%s) of its delivery is not stored', t.turn, t.reason) AS detail
FROM turn t
JOIN ledger.app a ON a.app_id = (t.thing).app_id
WHERE NOT ledger.awaits_release(
    (t.thing).app_id, (t.thing).product_id, (t.thing).purchase_id, (t.thing).subscription_id)
UNION ALL
SELECT i.purchase_id, a.bundle_id, i.environment::text, i.original_transaction_id, i.product_id, NULL,
       format('delivery %s is %s', d.delivery_id, d.doubt)
FROM doubtful d
JOIN ledger.purchase i USING (purchase_id)
JOIN ledger.app a ON a.app_id = i.app_id
UNION ALL
SELECT i.purchase_id, a.bundle_id, i.environment::text, i.original_transaction_id, i.product_id, NULL,
       format('delivery %s is of %s than the turn before', d.delivery_id,
              CASE WHEN d.units > g.units OR d.units <> b.units AND d.reason <> 'refund'
                   THEN 'other units' ELSE 'another customer' END)
FROM seen n JOIN ledger.delivery d ON d.purchase_id = ANY(n.ids) AND d.turn > 1
JOIN ledger.delivery b ON b.purchase_id = d.purchase_id AND b.turn = d.turn - 1
JOIN ledger.delivery g ON g.purchase_id = d.purchase_id AND g.turn = 1
JOIN ledger.purchase i ON i.purchase_id = d.purchase_id
JOIN ledger.app a ON a.app_id = i.app_id
-- What is taken back was given to the same customer; a refund takes back a part of what was given first.
WHERE d.turn % 2 = 0 AND d.customer_id <> b.customer_id OR d.units > g.units
   OR d.units <> b.units AND d.reason <> 'refund'
UNION ALL
SELECT i.purchase_id, a.bundle_id, i.environment::text, i.original_transaction_id, i.product_id, NULL,
       format('delivery %s takes more of its customer than the turns before gave', d.delivery_id)
FROM seen n
CROSS JOIN LATERAL (
    SELECT d.delivery_id, d.purchase_id,
           sum(CASE d.turn % 2 WHEN 1 THEN d.units ELSE -d.units END) FILTER (WHERE d.skip_reason IS NULL)
               OVER (PARTITION BY d.purchase_id, d.customer_id ORDER BY d.turn) AS held
    FROM ledger.delivery d WHERE d.purchase_id = ANY(n.ids)) d
JOIN ledger.purchase i USING (purchase_id)
JOIN ledger.app a ON a.app_id = i.app_id
WHERE d.held < 0
UNION ALL
SELECT i.purchase_id, a.bundle_id, i.environment::text, i.original_transaction_id, i.product_id, NULL,
       format('delivery %s is of a customer who never owned it', d.delivery_id)
FROM seen n JOIN ledger.delivery d ON d.purchase_id = ANY(n.ids) AND d.turn = 1
JOIN ledger.purchase i ON i.purchase_id = d.purchase_id
JOIN ledger.app a ON a.app_id = i.app_id
WHERE NOT EXISTS (SELECT FROM ledger.ownership o WHERE o.purchase_id = d.purchase_id AND o.customer_id = d.customer_id)
UNION ALL
SELECT i.purchase_id, a.bundle_id, i.environment::text, i.original_transaction_id, i.product_id, NULL,
       format('delivery %s is of other units than the catalog gives', d.delivery_id)
FROM seen n JOIN ledger.delivery d ON d.purchase_id = ANY(n.ids) AND d.turn = 1
JOIN ledger.purchase i ON i.purchase_id = d.purchase_id
JOIN ledger.product c ON c.app_id = i.app_id AND c.product_id = i.product_id
JOIN ledger.app a ON a.app_id = i.app_id
-- A settlement beside the change of a catalog still reads the former one.
WHERE c.kind = 'consumable' AND d.created_at > c.units_since + interval '10 minutes'
  AND (d.credit, d.units) IS DISTINCT FROM (c.credit, c.units::bigint * i.quantity)
ORDER BY key

-- name: verify_subscription_deliveries
-- Verify: returns subscriptions after $1 up to $2 that need a turn of delivery that is not stored, unless a worker has yet
-- to come to it among what a catalog released, those with a delivery in no state or in two,
-- and those with a turn whose units or customer differ from what a settlement writes.
WITH seen AS MATERIALIZED (
    SELECT COALESCE(array_agg(i.subscription_id), '{}') AS ids FROM ledger.subscription i
    WHERE i.subscription_id > $1::bigint AND i.subscription_id <= $2::bigint AND i.version > 0
), turn AS MATERIALIZED (
    SELECT t.* FROM seen n CROSS JOIN LATERAL ledger.next_turns('{}', n.ids) t
), doubtful AS MATERIALIZED (
    SELECT d.* FROM seen n CROSS JOIN LATERAL ledger.deliveries_in_doubt('{}', n.ids) d
)
SELECT (t.thing).subscription_id AS key, a.bundle_id, (t.thing).environment::text AS environment,
       (t.thing).original_transaction_id, NULL AS product_id, NULL::bigint AS receipt_id,
       format('turn %s (%s) of its delivery is not stored', t.turn, t.reason) AS detail
FROM turn t
JOIN ledger.app a ON a.app_id = (t.thing).app_id
WHERE NOT ledger.awaits_release(
    (t.thing).app_id, (t.thing).product_id, (t.thing).purchase_id, (t.thing).subscription_id)
UNION ALL
SELECT i.subscription_id, a.bundle_id, i.environment::text, i.original_transaction_id, NULL, NULL,
       format('delivery %s is %s', d.delivery_id, d.doubt)
FROM doubtful d
JOIN ledger.subscription i USING (subscription_id)
JOIN ledger.app a ON a.app_id = i.app_id
UNION ALL
SELECT i.subscription_id, a.bundle_id, i.environment::text, i.original_transaction_id, NULL, NULL,
       format('delivery %s is of %s than the turn before', d.delivery_id,
              CASE WHEN d.units IS NOT DISTINCT FROM b.units OR d.reason = 'refund' AND d.units < b.units
                   THEN 'another customer' ELSE 'other units' END)
FROM seen n JOIN ledger.delivery d ON d.subscription_id = ANY(n.ids) AND d.turn > 1
JOIN ledger.delivery b ON b.subscription_id = d.subscription_id AND b.period_id = d.period_id AND b.turn = d.turn - 1
JOIN ledger.subscription i ON i.subscription_id = d.subscription_id
JOIN ledger.app a ON a.app_id = i.app_id
-- What is taken back was given to the same customer; a part of a refund may be less.
WHERE d.turn % 2 = 0 AND d.customer_id <> b.customer_id OR d.units > b.units
   OR d.units < b.units AND d.reason <> 'refund'
UNION ALL
SELECT i.subscription_id, a.bundle_id, i.environment::text, i.original_transaction_id, NULL, NULL,
       format('delivery %s is of a customer who never owned it', d.delivery_id)
FROM seen n JOIN ledger.delivery d ON d.subscription_id = ANY(n.ids) AND d.turn = 1
JOIN ledger.subscription i ON i.subscription_id = d.subscription_id
JOIN ledger.app a ON a.app_id = i.app_id
WHERE NOT EXISTS (SELECT FROM ledger.ownership o WHERE o.subscription_id = d.subscription_id AND o.customer_id = d.customer_id)
  -- A delivery goes with its period to another subscription; who paid owned one that had it.
  AND NOT EXISTS (
    SELECT FROM ledger.period t
    CROSS JOIN ledger.moved_periods(t) p
    JOIN ledger.subscription h ON (h.subscription_id, h.app_id, h.environment) = (p.subscription_id, i.app_id, i.environment)
    JOIN ledger.ownership o ON o.subscription_id = h.subscription_id AND o.customer_id = d.customer_id
    WHERE t.period_id = d.period_id)
ORDER BY key

-- name: verify_orders
-- Verify: returns orders paid by purchases, or by subscriptions unless $3, after $1 up to $2, whose delivery is missing,
-- tied to none, or settled without them; and those that a possible duplicate pays, or what is another customer's.
WITH purchased AS MATERIALIZED (
    SELECT COALESCE(array_agg(p.purchase_id), '{}') AS ids FROM ledger.purchase p
    WHERE $3::boolean AND p.purchase_id > $1::bigint AND p.purchase_id <= $2::bigint
), subscribed AS MATERIALIZED (
    SELECT COALESCE(array_agg(s.subscription_id), '{}') AS ids FROM ledger.subscription s
    WHERE NOT $3::boolean AND s.subscription_id > $1::bigint AND s.subscription_id <= $2::bigint
), doubtful AS MATERIALIZED (
    SELECT d.* FROM purchased p CROSS JOIN subscribed s CROSS JOIN LATERAL ledger.orders_in_doubt(p.ids, s.ids) d
)
SELECT COALESCE(d.purchase_id, d.subscription_id) AS key, a.bundle_id, o.environment::text AS environment,
       o.transaction_id AS original_transaction_id, o.product_id, NULL::bigint AS receipt_id,
       format('order %s %s', d.order_id, d.doubt) AS detail
FROM doubtful d
JOIN ledger.purchase_order o USING (order_id)
JOIN ledger.app a USING (app_id)
ORDER BY key

-- name: verify_feed
-- Verify: returns positions of the feed after $1 up to $2 that are empty, lie beyond the newest, precede an earlier
-- event of their subscription, purchase or customer, or have another app or environment than that.
SELECT place.position AS key, a.bundle_id, own.environment::text AS environment,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id, p.product_id,
       NULL::bigint AS receipt_id, format('position %s %s', place.position, trouble.detail) AS detail
FROM generate_series($1::bigint + 1, $2::bigint) AS place (position)
LEFT JOIN ledger.event_feed f USING (position)
LEFT JOIN ledger.event e USING (event_id)
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id)
LEFT JOIN ledger.customer c USING (customer_id)
CROSS JOIN LATERAL (
    SELECT COALESCE(s.app_id, p.app_id, c.app_id) AS app_id, COALESCE(s.environment, p.environment, e.environment) AS environment
) own
LEFT JOIN ledger.app a ON a.app_id = own.app_id
LEFT JOIN LATERAL (
    SELECT b.event_id FROM ledger.event b
    WHERE b.subscription_id = e.subscription_id AND (b.version, b.ordinal) < (e.version, e.ordinal)
    ORDER BY b.version DESC, b.ordinal DESC LIMIT 1) of_subscription ON e.subscription_id IS NOT NULL
LEFT JOIN LATERAL (
    SELECT b.event_id FROM ledger.event b
    WHERE b.purchase_id = e.purchase_id AND (b.version, b.ordinal) < (e.version, e.ordinal)
    ORDER BY b.version DESC, b.ordinal DESC LIMIT 1) of_purchase ON e.purchase_id IS NOT NULL
LEFT JOIN LATERAL (
    SELECT b.event_id FROM ledger.event b
    WHERE b.customer_id = e.customer_id AND b.subscription_id IS NULL AND b.purchase_id IS NULL
      AND (b.version, b.ordinal) < (e.version, e.ordinal)
    ORDER BY b.version DESC, b.ordinal DESC LIMIT 1) of_customer ON e.subscription_id IS NULL AND e.purchase_id IS NULL
CROSS JOIN LATERAL (
    SELECT COALESCE(of_subscription.event_id, of_purchase.event_id, of_customer.event_id) AS event_id) before
LEFT JOIN ledger.event_feed earlier ON earlier.event_id = before.event_id
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN f.event_id IS NULL THEN 'is empty'
        WHEN place.position > (SELECT n.position FROM ledger.feed n) THEN 'lies behind the newest'
        WHEN before.event_id IS NOT NULL AND COALESCE(earlier.position > place.position, true)
            THEN 'comes before an earlier change of the same'
        WHEN (e.app_id, e.environment) <> (own.app_id, own.environment)
            THEN 'has another app or environment than what it is about'
        END AS detail) trouble
WHERE trouble.detail IS NOT NULL
ORDER BY place.position

-- name: verify_webhooks
-- Verify: returns webhooks after $1 up to $2 that are beyond the feed, or one of whose streams waits where it has no event,
-- or beyond the webhook's position.
SELECT w.webhook_id::bigint AS key, a.bundle_id, NULL::text AS environment, NULL::text AS original_transaction_id,
       NULL::text AS product_id, NULL::bigint AS receipt_id, format('webhook %s %s', w.webhook_id, trouble.detail) AS detail
FROM ledger.webhook w
LEFT JOIN ledger.app a USING (app_id)
CROSS JOIN LATERAL (
    SELECT format('is at position %s, beyond the feed', w.position) AS detail FROM ledger.feed f WHERE w.position > f.position
    UNION ALL
    (SELECT format('has a stream that waits at position %s, %s', l.position, CASE
                WHEN l.position > w.position THEN 'beyond its own' ELSE 'where it has no event' END)
     FROM ledger.webhook_line l
     LEFT JOIN ledger.event_feed f USING (position)
     LEFT JOIN ledger.event e USING (event_id)
     WHERE l.webhook_id = w.webhook_id AND (l.position > w.position OR l.stream_id IS DISTINCT FROM CASE l.stream_of
         WHEN 'subscription' THEN e.subscription_id WHEN 'purchase' THEN e.purchase_id
         ELSE CASE WHEN num_nonnulls(e.subscription_id, e.purchase_id) = 0 THEN e.customer_id END END)
     LIMIT 1)) trouble
WHERE w.webhook_id > $1::bigint AND w.webhook_id <= $2::bigint
ORDER BY w.webhook_id

-- name: verify_summaries
-- Verify: returns subscriptions after $1 up to $2 whose shares of the summaries, for past days, or whose rows for
-- reports differ from their history. Leaves out those written since their last summary. Where it leaves out all, it
-- computes nothing: the functions plan their large statements at each call.
WITH reported AS MATERIALIZED (
    SELECT COALESCE(array_agg(k.stream_id), '{}') AS streams FROM perennial.summarised k
    WHERE k.stream_id > $1::bigint AND k.stream_id <= $2::bigint
), stored AS MATERIALIZED (
    SELECT g.* FROM ledger.summary_share g
    WHERE g.subscription_id = ANY ((SELECT streams FROM reported)::bigint[])
), given AS MATERIALIZED (
    SELECT h.* FROM ledger.shares_of((SELECT streams FROM reported)) h
    WHERE (SELECT streams FROM reported) <> '{}'
), differing AS (
    SELECT d.subscription_id,
           format('the summaries have another share of %s (days that differ: %s) than its history', min(d.day),
                  count(DISTINCT d.day)) AS detail
    FROM ((TABLE stored EXCEPT TABLE given) UNION ALL (TABLE given EXCEPT TABLE stored)) d
    WHERE d.day < (now() AT TIME ZONE 'UTC')::date
    GROUP BY d.subscription_id
    UNION ALL
    SELECT r.stream_id,
           format('the summaries have other %s (rows that differ: %s) than its history',
                  replace(min(r.figure), '_', ' '), sum(abs(r.difference)))
    FROM ledger.rows_differing_of((SELECT streams FROM reported)) r
    WHERE (SELECT streams FROM reported) <> '{}'
    GROUP BY r.stream_id
)
SELECT s.subscription_id AS key, a.bundle_id, s.environment::text AS environment, s.original_transaction_id,
       NULL AS product_id, NULL::bigint AS receipt_id, min(d.detail) AS detail
FROM differing d
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id)
GROUP BY s.subscription_id, a.bundle_id, s.environment, s.original_transaction_id
ORDER BY s.subscription_id

-- name: verify_sums
-- Verify: returns apps after $1 up to $2 whose sums of the summaries differ from the shares that they sum.
WITH given AS (
    SELECT s.app_id, s.environment, g.day, g.currency,
           sum(g.active) AS active, sum(g.trial) AS trial, sum(g.paying) AS paying,
           sum(g.monthly_milliunits) AS monthly_milliunits, sum(g.began) AS began, sum(g.returned) AS returned,
           sum(g.churned) AS churned, sum(g.trials_started) AS trials_started,
           sum(g.trials_converted) AS trials_converted, sum(g.trials_lost) AS trials_lost
    FROM ledger.summary_share g JOIN ledger.subscription s USING (subscription_id)
    WHERE s.app_id > $1::bigint AND s.app_id <= $2::bigint
    GROUP BY s.app_id, s.environment, g.day, g.currency
), stored AS (
    SELECT d.* FROM ledger.summary_day d WHERE d.app_id > $1::bigint AND d.app_id <= $2::bigint
), differing AS (
    SELECT app_id, environment, day
    FROM stored d FULL JOIN given g USING (app_id, environment, day, currency)
    CROSS JOIN LATERAL (VALUES
        (d.active::numeric, g.active::numeric), (d.trial, g.trial), (d.paying, g.paying),
        (d.monthly_milliunits, g.monthly_milliunits), (d.began, g.began), (d.returned, g.returned),
        (d.churned, g.churned), (d.trials_started, g.trials_started), (d.trials_converted, g.trials_converted),
        (d.trials_lost, g.trials_lost)) AS figures (stored, given)
    WHERE COALESCE(figures.stored, 0) <> COALESCE(figures.given, 0)
)
SELECT a.app_id::bigint AS key, a.bundle_id, min(d.environment::text) AS environment, NULL AS original_transaction_id,
       NULL AS product_id, NULL::bigint AS receipt_id,
       format('the summaries of %s (days that differ: %s) are not the sums of their shares', min(d.day),
              count(DISTINCT d.day)) AS detail
FROM differing d JOIN ledger.app a USING (app_id)
GROUP BY a.app_id, a.bundle_id
ORDER BY a.app_id
