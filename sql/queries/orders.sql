-- Orders: how they are placed, proved, paid and read.

-- name: lock_buyer_of_order
-- Orders: makes the new receipts of the customer of order $1 wait for each other until the end of the transaction.
SELECT pg_advisory_xact_lock(
    hashtext('ledger.new_receipts'), (COALESCE(c.merged_into, c.customer_id) % 2147483647)::int)
FROM ledger.purchase_order o JOIN ledger.customer c USING (customer_id)
WHERE o.order_id = $1::text::uuid

-- name: store_order_receipts
-- Orders: stores that receipts ($1) were sent for orders ($2), with a proof or by name ($3), for the payment that a caller
-- named ($5); $4 says which are new. Orders of erased customers get none. Returns the orders.
INSERT INTO ledger.order_receipt AS u (receipt_id, order_id, is_proved, is_new, sent_at, transaction_id, is_naming)
SELECT n.receipt_id, o.order_id, n.is_proved, n.is_new, clock_timestamp(), n.transaction_id, n.transaction_id IS NOT NULL
FROM (
    SELECT n.receipt_id, n.order_id::uuid AS order_id, bool_or(n.is_proved) AS is_proved, bool_or(n.is_new) AS is_new,
           max(n.transaction_id COLLATE "C") AS transaction_id
    FROM unnest($1::bigint[], $2::text[], $3::boolean[], $4::boolean[], $5::text[])
        AS n(receipt_id, order_id, is_proved, is_new, transaction_id)
    GROUP BY n.receipt_id, n.order_id) n
JOIN ledger.purchase_order o ON o.order_id = n.order_id AND o.sealed_key IS NOT NULL
ORDER BY n.receipt_id, o.order_id
FOR KEY SHARE OF o
ON CONFLICT (receipt_id, order_id) DO UPDATE
SET is_proved = u.is_proved OR EXCLUDED.is_proved, sent_at = EXCLUDED.sent_at, settled = false,
    transaction_id = COALESCE(EXCLUDED.transaction_id, u.transaction_id), is_naming = EXCLUDED.is_naming
RETURNING u.order_id::text AS order_id

-- name: read_order
-- Orders: returns order $2 of the app with the bundle id $1; of customer $3 alone, by any name, if given.
SELECT o.order_id::text AS order_id, head.name AS customer, o.product_id, o.quantity, o.environment::text AS environment,
       o.state::text AS state, o.cause, o.created_at, o.expires_at, o.paid_at, o.transaction_id,
       ARRAY(SELECT d.delivery_id::text FROM ledger.delivery d WHERE d.order_id = o.order_id ORDER BY d.delivery_id)
           AS delivery_ids
FROM ledger.purchase_order o
JOIN ledger.app a ON a.app_id = o.app_id AND a.bundle_id = $1::text AND a.removed_at IS NULL
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE o.order_id = $2::text::uuid
  AND ($3::text IS NULL OR head.customer_id = (
      SELECT COALESCE(n.merged_into, n.customer_id) FROM ledger.customer n
      WHERE n.app_id = a.app_id AND n.name = $3::text))

-- name: find_order
-- Orders: returns the app of order $1, and its customer as the name means now.
SELECT a.bundle_id, head.name AS customer
FROM ledger.purchase_order o
JOIN ledger.app a USING (app_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE o.order_id = $1::text::uuid

-- name: read_customer_orders
-- Orders: returns those of a customer ($2, by any name) of app $1 after order $4, oldest first, at most $5; of state $3
-- alone, if given.
SELECT o.order_id::text AS order_id, head.name AS customer, o.product_id, o.quantity, o.environment::text AS environment,
       o.state::text AS state, o.cause, o.created_at, o.expires_at, o.paid_at, o.transaction_id,
       ARRAY(SELECT d.delivery_id::text FROM ledger.delivery d WHERE d.order_id = o.order_id ORDER BY d.delivery_id)
           AS delivery_ids
FROM ledger.purchase_order o
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE o.customer_id IN (
    SELECT n.customer_id FROM ledger.customer asked
    JOIN ledger.customer n ON COALESCE(n.merged_into, n.customer_id) = COALESCE(asked.merged_into, asked.customer_id)
     AND n.app_id = asked.app_id
    WHERE asked.app_id = $1::int AND asked.name = $2::text)
  AND ($3::text IS NULL OR o.state = $3::text::ledger.order_state)
  AND ($4::text IS NULL OR (o.created_at, o.order_id) > (
      SELECT p.created_at, p.order_id FROM ledger.purchase_order p WHERE p.order_id = $4::text::uuid))
ORDER BY o.created_at, o.order_id LIMIT $5::int

-- name: cancel_order
-- Orders: cancels order $2 of app $1, unless it is paid or has ended.
UPDATE ledger.purchase_order o SET state = 'cancelled', cause = 'service', changed_at = clock_timestamp()
WHERE o.app_id = $1::int AND o.order_id = $2::text::uuid AND o.state IN ('created', 'purchasing', 'deferred', 'failed')
RETURNING o.order_id

-- name: find_order_customers
-- Settlement: returns the customers whom account tokens ($2 of apps $1, in lower case) name, through merges: the customer
-- of the order whose token it is, else the one whose id it is, in lower case before upper. Tokens of erased customers name
-- none (is_erased).
SELECT t.app_id, t.token, head.customer_id, head.name, named.is_ordered, false AS is_erased
FROM unnest($1::int[], $2::text[]) AS t(app_id, token)
CROSS JOIN LATERAL (
    SELECT o.customer_id, true AS is_ordered, NULL COLLATE "C" AS name FROM ledger.purchase_order o
    WHERE o.app_account_token = ledger.account_token(t.token) AND o.app_id = t.app_id
    UNION ALL
    SELECT c.customer_id, false, c.name COLLATE "C" FROM ledger.customer c
    WHERE c.app_id = t.app_id AND c.name IN (t.token, upper(t.token))
    ORDER BY is_ordered DESC, name DESC LIMIT 1) named
CROSS JOIN LATERAL (SELECT c.merged_into FROM ledger.customer c WHERE c.customer_id = named.customer_id OFFSET 0) c
CROSS JOIN LATERAL (
    SELECT h.customer_id, h.name FROM ledger.customer h
    WHERE h.customer_id = COALESCE(c.merged_into, named.customer_id) OFFSET 0) head
UNION ALL
SELECT t.app_id, t.token, NULL, NULL, NULL, true
FROM unnest($1::int[], $2::text[]) AS t(app_id, token)
JOIN ledger.erased_token e ON e.app_id = t.app_id AND e.digest = sha256(convert_to(t.token, 'UTF8'))
WHERE NOT EXISTS (SELECT FROM ledger.customer c WHERE c.app_id = t.app_id AND c.name IN (t.token, upper(t.token)))

-- name: expire_orders
-- Orders: expires open orders whose time is over, at most $1.
UPDATE ledger.purchase_order o SET state = 'expired', cause = 'not_paid', changed_at = clock_timestamp()
WHERE o.order_id IN (
    SELECT e.order_id FROM ledger.purchase_order e
    WHERE e.state IN ('created', 'purchasing', 'deferred') AND e.expires_at <= now()
    ORDER BY e.expires_at LIMIT $1::int FOR NO KEY UPDATE SKIP LOCKED)
RETURNING o.order_id

-- name: forget_order_requests
-- Orders: deletes Idempotency-Keys that are older than 24 hours, at most $1.
DELETE FROM ledger.order_request r
WHERE (r.app_id, r.request_key) IN (
    SELECT o.app_id, o.request_key FROM ledger.order_request o
    WHERE o.asked_at <= now() - interval '24 hours' ORDER BY o.asked_at LIMIT $1::int)

-- name: place_orders
-- Orders: places orders that arrived together; ledger.place_orders says what the parameters mean and what it leaves out. Also
-- returns whether something may pay each that was bought before, at most $15 ms.
SELECT o.order_id::text AS order_id, o.state::text AS state, o.expires_at,
       ledger.may_be_paid(o.order_id, $15::bigint * interval '1 ms') AS may_be_paid
FROM ledger.place_orders(
    $1::text[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::text[], $7::bytea[], $8::text[], $9::bytea[],
    $10::text[]::uuid[], $11::text[]::uuid[], $12::bytea[], $13::bigint * interval '1 ms', $14::int) o

-- name: remember_placed
-- Orders: makes the answers to the Idempotency-Keys ($2) of orders ($1) what placing them made these, and returns all: a
-- repetition that came at the same time may have decided it. What became of an order later changes no answer.
UPDATE ledger.order_request r SET state = CASE WHEN o.state IN ('paid', 'delivered') THEN o.state ELSE r.state END
FROM unnest($1::text[], $2::text[]) AS n(order_id, request_key)
JOIN ledger.purchase_order o ON o.order_id = n.order_id::uuid
WHERE r.app_id = o.app_id AND r.request_key = n.request_key AND r.order_id = o.order_id
RETURNING r.order_id::text AS order_id, r.state::text AS state

-- name: lock_buyers_of
-- Orders: locks the customers of orders ($1), as their names mean now, so that no settlement stores what they bought.
SELECT FROM ledger.customer c
WHERE c.customer_id IN (
    SELECT COALESCE(b.merged_into, b.customer_id)
    FROM ledger.purchase_order o JOIN ledger.customer b USING (customer_id)
    WHERE o.order_id = ANY($1::text[]::uuid[]))
ORDER BY c.customer_id FOR NO KEY UPDATE

-- name: lock_payable_with
-- Orders: locks the new orders $1 that something may pay which was bought before, at most $2 ms before them, and the payable
-- orders beside them; returns their ids.
SELECT id::text AS order_id
FROM unnest(ledger.lock_payable_with($1::text[]::uuid[], $2::bigint * interval '1 ms')) AS id

-- name: recall_order
-- Orders: returns the order that Idempotency-Key $2 of app $1 placed within 24 hours, as it was answered, whether $3 was
-- asked then, and whether something may pay it that was bought before, at most $4 ms. Forgets an older use of the key. The
-- lock waits for a call with the same key that decides what pays the order.
WITH forgotten AS (
    DELETE FROM ledger.order_request r USING ledger.app a
    WHERE a.bundle_id = $1::text AND r.app_id = a.app_id AND r.request_key = $2::text
      AND r.asked_at + interval '24 hours' <= now()
)
SELECT o.order_id::text AS order_id, o.app_account_token::text AS app_account_token, o.sealed_key, r.state::text AS state,
       r.expires_at, r.request = $3::bytea AS is_same,
       r.state IN ('created', 'delivered') AND ledger.may_be_paid(o.order_id, $4::bigint * interval '1 ms') AS may_be_paid
FROM ledger.app a
JOIN ledger.order_request r ON r.app_id = a.app_id AND r.request_key = $2::text
JOIN ledger.purchase_order o USING (order_id)
WHERE a.bundle_id = $1::text AND r.asked_at + interval '24 hours' > now()
FOR NO KEY UPDATE OF r

-- name: read_room_for_order
-- Orders: returns whether the catalog of app $1 knows product $3, says what it is and sells one at a time, how many open
-- orders customer $2 has that give way to no other one, by any name, and in how many seconds the first of these expires.
SELECT p.product_id IS NOT NULL AS is_known, p.kind IS NOT NULL AS has_kind,
       COALESCE(ledger.is_bought_singly(p.kind), false) AS is_single, o.open_orders,
       GREATEST(1, ceil(extract(epoch FROM o.expires_at - clock_timestamp())))::bigint AS seconds_left
FROM ledger.app a
LEFT JOIN ledger.product p ON p.app_id = a.app_id AND p.product_id = $3::text
CROSS JOIN LATERAL (
    SELECT count(*) AS open_orders, min(o.expires_at) AS expires_at
    FROM ledger.customer c
    CROSS JOIN LATERAL (
        SELECT o.expires_at FROM ledger.purchase_order o
        WHERE o.customer_id = COALESCE(c.merged_into, c.customer_id)
          AND o.state IN ('created', 'purchasing', 'deferred')
          AND (o.state <> 'created' OR EXISTS (SELECT FROM ledger.order_receipt x WHERE x.order_id = o.order_id))
        OFFSET 0) o
    WHERE c.app_id = a.app_id AND c.name = $2::text) o
WHERE a.bundle_id = $1::text AND a.removed_at IS NULL

-- name: may_be_paying
-- Orders: returns whether one of the customers ($1) has an open order, one for what was owned already that would be open,
-- or a paid one whose payment may move, by any name; or one-time purchases ($2) or subscriptions ($3) pay one.
SELECT EXISTS (
    SELECT FROM unnest($2::bigint[]) AS n(id)
    CROSS JOIN LATERAL (SELECT r.state FROM ledger.purchase_order r WHERE r.purchase_id = n.id OFFSET 0) r
    WHERE r.state = 'paid')
  OR EXISTS (
    SELECT FROM unnest($3::bigint[]) AS n(id)
    CROSS JOIN LATERAL (SELECT r.state FROM ledger.purchase_order r WHERE r.subscription_id = n.id OFFSET 0) r
    WHERE r.state = 'paid')
  OR EXISTS (
    SELECT FROM unnest($1::bigint[]) AS n(customer_id)
    CROSS JOIN LATERAL (
        SELECT n.customer_id AS name_id
        UNION ALL
        SELECT c.customer_id FROM ledger.customer c WHERE c.merged_into = n.customer_id OFFSET 0) c
    CROSS JOIN LATERAL (
        SELECT FROM ledger.purchase_order r
        WHERE r.customer_id = c.name_id AND r.state IN ('created', 'purchasing', 'deferred')
        UNION ALL
        SELECT FROM ledger.purchase_order r WHERE r.customer_id = c.name_id AND r.state = 'paid'
        UNION ALL
        SELECT FROM ledger.purchase_order r
        WHERE r.customer_id = c.name_id AND r.state = 'delivered' AND r.paid_at IS NULL AND r.expires_at > now() OFFSET 0) r)
    AS is_open

-- name: read_payers
-- Orders: returns what pays the orders of customers ($1) that are paid and not delivered.
SELECT r.purchase_id, r.subscription_id FROM ledger.purchase_order r
WHERE r.customer_id = ANY($1::bigint[]) AND r.state = 'paid'

-- name: tie_orders_of
-- Orders: ties to the orders of customers ($1) what was given of their payers, after a merge or a split: what another name
-- was given belongs to the order where both are one customer, and to none where they are not. The orders become what these
-- deliveries make them.
SELECT FROM (
    SELECT ledger.tie_deliveries(
        COALESCE(array_agg(r.purchase_id) FILTER (WHERE r.purchase_id IS NOT NULL), '{}'),
        COALESCE(array_agg(r.subscription_id) FILTER (WHERE r.period_id IS NOT NULL), '{}'),
        COALESCE(array_agg(r.period_id) FILTER (WHERE r.period_id IS NOT NULL), '{}')),
        ledger.advance_orders(array_agg(r.order_id))
    FROM ledger.purchase_order r WHERE r.customer_id = ANY($1::bigint[]) AND r.paid_at IS NOT NULL) AS tied

-- name: lock_payable
-- Orders: locks the orders that one-time purchases $1, the periods of subscriptions $2 and the receipts $3 may pay, and
-- returns their ids.
SELECT id::text AS order_id FROM unnest(ledger.lock_payable($1::bigint[], $2::bigint[], $3::bigint[])) AS id

-- name: settle_order_receipts
-- Orders: marks receipts ($1) as settled for the orders that they were sent for.
UPDATE ledger.order_receipt x SET settled = true WHERE x.receipt_id = ANY($1::bigint[]) AND NOT x.settled

-- name: read_payable_orders
-- Orders: returns those of $1 that are unpaid, or paid and not delivered, with what pays them and the state before;
-- also those for what was owned already. Of what
-- Apple sells one at a time the quantity is null; an open order has the transaction that it awaits, one for a non-consumable
-- what its customer owns of it (owned_by). One that is_lost is paid by what is another customer's (ledger.held_by).
SELECT r.order_id::text AS order_id, COALESCE(c.merged_into, c.customer_id) AS customer_id, r.product_id,
       CASE WHEN NOT COALESCE(ledger.is_bought_singly(d.kind), false) THEN r.quantity END AS quantity,
       r.created_at, r.app_account_token::text AS app_account_token, r.purchase_id, r.subscription_id, r.period_id, r.cause,
       was.is_open, CASE WHEN was.is_open THEN ledger.awaited_transaction(r.order_id) END AS awaits,
       CASE WHEN d.kind = 'non_consumable'
            THEN ledger.owned_for_order(COALESCE(c.merged_into, c.customer_id), r.product_id, r.order_id)
            ELSE '{}' END AS owned_by,
       r.state = 'paid' AND ledger.is_same_customer(
           ledger.held_by(r.purchase_id, r.subscription_id, r.period_id), r.customer_id) IS NOT TRUE AS is_lost
FROM unnest($1::text[]) AS n(id)
CROSS JOIN LATERAL (SELECT r.* FROM ledger.purchase_order r WHERE r.order_id = n.id::uuid OFFSET 0) r
JOIN ledger.customer c USING (customer_id)
LEFT JOIN ledger.product d ON d.app_id = r.app_id AND d.product_id = r.product_id
LEFT JOIN LATERAL (
    SELECT g.state FROM ledger.order_change g
    WHERE r.state = 'paid' AND g.order_id = r.order_id
      AND (g.state NOT IN ('paid', 'delivered', 'refunded') OR g.cause = 'already_owned')
    ORDER BY g.ordinal DESC LIMIT 1) prior ON true
CROSS JOIN LATERAL (
    SELECT CASE COALESCE(prior.state, r.state)::text
               WHEN 'created' THEN true WHEN 'purchasing' THEN true WHEN 'deferred' THEN true
               -- What was owned already may still be bought while the order would wait.
               WHEN 'delivered' THEN r.expires_at > clock_timestamp() ELSE false END AS is_open OFFSET 0) was
WHERE r.state IN ('created', 'purchasing', 'deferred', 'cancelled', 'failed', 'expired', 'paid')
   OR r.state = 'delivered' AND r.paid_at IS NULL
ORDER BY r.order_id

-- name: read_paying
-- Orders: returns the transactions that may pay the orders $1, bought at most $2 ms before the first of them;
-- ledger.paying_transactions says what the columns mean. What a customer only pointed at, and what another one was given,
-- pays nothing.
SELECT t.purchase_id, t.subscription_id, t.period_id, t.environment::text AS environment, t.product_id, t.quantity,
       t.purchased_at, t.owner_id, t.is_claimed, t.is_renewal, t.transaction_ids, t.account_token,
       t.token_order::text AS token_order, t.token_customer, t.is_given, t.is_duplicate, t.proved_for, t.sent_for,
       t.named_for, t.pays::text AS pays, t.is_revoked
FROM ledger.paying_transactions($1::text[]::uuid[], $2::bigint * interval '1 ms') t
WHERE (ledger.given_to(t.purchase_id, t.subscription_id, t.period_id) <> t.owner_id) IS NOT TRUE
  AND NOT EXISTS (
        SELECT FROM ledger.ownership w
        WHERE w.purchase_id = t.purchase_id AND upper_inf(w.known) AND upper_inf(w.valid) AND w.cause = 'pointer' OFFSET 0)
  AND NOT EXISTS (
        SELECT FROM ledger.ownership w
        WHERE w.subscription_id = t.subscription_id AND upper_inf(w.known) AND upper_inf(w.valid) AND w.cause = 'pointer'
        OFFSET 0)

-- name: own_ordered
-- Orders: makes those of $1 delivered that are open, and whose customer owns the ordered non-consumable
-- (ledger.owned_for_order), at $2.
UPDATE ledger.purchase_order o SET state = 'delivered', cause = 'already_owned',
    changed_at = GREATEST($2::timestamptz, o.changed_at + interval '1 microsecond')
FROM ledger.product d, ledger.customer c
WHERE o.order_id = ANY($1::text[]::uuid[]) AND o.state IN ('created', 'purchasing', 'deferred')
  AND d.app_id = o.app_id AND d.product_id = o.product_id AND d.kind = 'non_consumable'
  AND c.customer_id = o.customer_id
  AND ledger.owned_for_order(COALESCE(c.merged_into, c.customer_id), o.product_id, o.order_id) <> '{}'

-- name: unpay_orders
-- Orders: makes orders ($1) unpaid at $2, because what paid them pays another order: they are again what they were before.
UPDATE ledger.purchase_order o
SET state = n.state, cause = CASE n.state WHEN 'delivered' THEN 'already_owned' ELSE 'moved' END, environment = NULL,
    transaction_id = NULL, paid_at = NULL, purchase_id = NULL, subscription_id = NULL, period_id = NULL,
    changed_at = GREATEST($2::timestamptz, o.changed_at + interval '1 microsecond')
FROM unnest($1::text[]) AS i(id)
CROSS JOIN LATERAL (
    SELECT g.state FROM ledger.order_change g
    WHERE g.order_id = i.id::uuid AND (g.state NOT IN ('paid', 'delivered', 'refunded') OR g.cause = 'already_owned')
    ORDER BY g.ordinal DESC LIMIT 1) n
WHERE o.order_id = i.id::uuid AND o.state = 'paid'

-- name: tie_deliveries
-- Orders: ties the deliveries of one-time purchases ($1) and of periods ($3 of subscriptions $2) to the orders that they pay.
SELECT FROM (SELECT ledger.tie_deliveries($1::bigint[], $2::bigint[], $3::bigint[])) AS tied

-- name: pay_orders
-- Orders: marks orders ($1) as paid, by $2 causes, $3 environments, $4 transactions, $5 Apple's dates, $6 one-time
-- purchases or $7 subscriptions and $8 periods, at $9. An order that the same pays already gets the cause.
UPDATE ledger.purchase_order o
SET state = 'paid', cause = n.cause, environment = n.environment::ledger.environment, transaction_id = n.transaction_id,
    paid_at = n.paid_at, purchase_id = n.purchase_id, subscription_id = n.subscription_id, period_id = n.period_id,
    -- A settlement reads its clock before it waits for an order that is placed at the same time.
    changed_at = GREATEST($9::timestamptz, o.changed_at + interval '1 microsecond')
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::bigint[], $7::bigint[], $8::bigint[])
    AS n(order_id, cause, environment, transaction_id, paid_at, purchase_id, subscription_id, period_id)
WHERE o.order_id = n.order_id::uuid
  AND (o.paid_at IS NULL
    OR o.state = 'paid' AND (o.purchase_id = n.purchase_id
        OR o.subscription_id = n.subscription_id AND o.period_id = n.period_id))

-- name: read_order_key
-- Orders: returns the sealed key of order $1, unless it ended more than 90 days ago or its customer was erased.
SELECT o.sealed_key FROM ledger.purchase_order o
WHERE o.order_id = $1::text::uuid AND o.sealed_key IS NOT NULL
  AND (o.state IN ('created', 'purchasing', 'deferred') OR o.changed_at > now() - interval '90 days')

-- name: report_order
-- Orders: makes order $1 what its device reports ($2), with a code ($3), unless it is paid or expired, was
-- cancelled by other than the device, or its customer was erased; a deferred one waits $4 ms from now. Returns the state.
WITH code AS MATERIALIZED (
    SELECT set_config('perennial.order_code', COALESCE($3::text, ''), true) AS code
), changed AS (
    UPDATE ledger.purchase_order o
    SET state = $2::text::ledger.order_state, cause = 'device', changed_at = clock_timestamp(),
        expires_at = CASE WHEN $2::text = 'deferred'
                          THEN GREATEST(o.expires_at, clock_timestamp() + $4::bigint * interval '1 ms')
                          ELSE o.expires_at END
    FROM code
    WHERE o.order_id = $1::text::uuid AND o.state::text <> $2::text
      AND o.state IN ('created', 'purchasing', 'deferred', 'cancelled', 'failed') AND o.sealed_key IS NOT NULL
      AND (o.state <> 'cancelled' OR o.cause = 'device')
    RETURNING o.state
)
SELECT COALESCE((SELECT n.state FROM changed n), o.state)::text AS state
FROM ledger.purchase_order o WHERE o.order_id = $1::text::uuid

-- name: find_provable
-- Orders: returns the one-time purchases of the ordered product in receipts that devices sent with proofs for orders, each
-- with such an order and its customer, as the name means now: for the orders that are payable with those for which
-- receipts ($1) were sent, and with those that purchases pay ($2 apps, $3 environments, $4 ids, $5 products), which Apple took
-- back. No one owns them, or by an upload or a pointer alone, and no token names another order or customer.
SELECT DISTINCT l.purchase_id, x.receipt_id, n.id::text AS order_id, head.customer_id, head.name
FROM unnest(ledger.payable_orders('{}', '{}', ARRAY(
    SELECT x.receipt_id FROM ledger.order_receipt x WHERE x.receipt_id = ANY($1::bigint[])
    UNION
    SELECT x.receipt_id
    FROM unnest($2::int[], $3::text[], $4::text[], $5::text[])
        AS k(app_id, environment, original_transaction_id, product_id)
    CROSS JOIN LATERAL (
        SELECT p.purchase_id FROM ledger.purchase p
        WHERE p.app_id = k.app_id AND p.environment = k.environment::ledger.environment
          AND p.original_transaction_id = k.original_transaction_id AND p.product_id = k.product_id OFFSET 0) p
    CROSS JOIN LATERAL (
        SELECT o.order_id, o.state FROM ledger.purchase_order o WHERE o.purchase_id = p.purchase_id OFFSET 0) o
    CROSS JOIN LATERAL (
        SELECT x.receipt_id, x.is_proved FROM ledger.order_receipt x WHERE x.order_id = o.order_id OFFSET 0) x
    WHERE o.state = 'paid' AND x.is_proved))) AS n(id)
CROSS JOIN LATERAL (SELECT r.* FROM ledger.purchase_order r WHERE r.order_id = n.id OFFSET 0) r
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
CROSS JOIN LATERAL (
    SELECT x.receipt_id FROM ledger.order_receipt x WHERE x.order_id = n.id AND x.is_proved OFFSET 0) x
CROSS JOIN LATERAL (
    SELECT l.purchase_id FROM ledger.receipt_purchase l WHERE l.receipt_id = x.receipt_id OFFSET 0) l
CROSS JOIN LATERAL (
    SELECT FROM ledger.purchase p
    WHERE p.purchase_id = l.purchase_id AND p.product_id = r.product_id AND p.version > 0
      AND (p.app_account_token IS NULL OR ledger.account_token(p.app_account_token) = r.app_account_token) OFFSET 0) p
WHERE NOT EXISTS (
    SELECT FROM ledger.ownership w
    WHERE w.purchase_id = l.purchase_id AND upper_inf(w.known) AND upper_inf(w.valid)
      AND (w.cause IN ('upload', 'pointer')) IS NOT TRUE)

-- name: read_order_receipts
-- Orders: returns for which orders receipts ($1) were sent, with the customer as the name means now, and whether an answer
-- came since (not is_new).
SELECT x.receipt_id, x.order_id::text AS order_id, x.is_proved, NOT x.settled AS is_new, x.transaction_id,
       head.customer_id, head.name,
       o.state <> 'refunded' AND (o.state <> 'delivered' OR o.paid_at IS NULL) AS is_payable
FROM ledger.order_receipt x
JOIN ledger.purchase_order o USING (order_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE x.receipt_id = ANY($1::bigint[])
ORDER BY o.created_at, o.order_id

-- name: lock_claimers
-- Orders: lets one transaction at a time claim by proofs of customers ($1), until it ends. The lock comes after those of
-- purchases and before those of customers.
SELECT pg_advisory_xact_lock(hashtext('perennial proof'), hashtext(n.customer_id::text))
FROM (SELECT n.customer_id FROM unnest($1::bigint[]) AS n(customer_id) ORDER BY n.customer_id) n

-- name: find_unclaimable
-- Orders: returns which purchases ($1) and subscriptions ($2) no proof may claim: something of it paid an order or was
-- acknowledged, or its owner has it by more than an upload; also which are possible duplicates of what another purchase gave.
SELECT n.id AS purchase_id, NULL::bigint AS subscription_id, false AS is_duplicate
FROM unnest($1::bigint[]) AS n(id)
WHERE EXISTS (SELECT FROM ledger.purchase_order o WHERE o.purchase_id = n.id OFFSET 0)
   OR EXISTS (SELECT FROM ledger.delivery_now d WHERE d.purchase_id = n.id AND d.state = 'acknowledged')
   OR EXISTS (
        SELECT FROM ledger.ownership w
        WHERE w.purchase_id = n.id AND upper_inf(w.known) AND upper_inf(w.valid)
          AND (w.cause IN ('upload', 'pointer')) IS NOT TRUE
        OFFSET 0)
UNION ALL
SELECT n.id, NULL, true
FROM unnest($1::bigint[]) AS n(id)
WHERE (SELECT d.skip_reason FROM ledger.delivery d WHERE d.purchase_id = n.id ORDER BY d.turn DESC LIMIT 1) = 'possible_duplicate'
  AND EXISTS (SELECT FROM ledger.twins(n.id))
UNION ALL
SELECT NULL, n.id, false
FROM unnest($2::bigint[]) AS n(id)
WHERE EXISTS (SELECT FROM ledger.purchase_order o WHERE o.subscription_id = n.id OFFSET 0)
   OR EXISTS (SELECT FROM ledger.delivery_now d WHERE d.subscription_id = n.id AND d.state = 'acknowledged')
   OR EXISTS (
        SELECT FROM ledger.ownership w
        WHERE w.subscription_id = n.id AND upper_inf(w.known) AND upper_inf(w.valid)
          AND (w.cause IN ('upload', 'pointer')) IS NOT TRUE
        OFFSET 0)

-- name: find_payable
-- Orders: returns the ids of the orders that the receipts $1 may pay, without a lock.
SELECT id::text AS order_id FROM unnest(ledger.payable_orders('{}', '{}', $1::bigint[])) AS id

-- name: advance_orders
-- Orders: makes the orders that one-time purchases $1 or subscriptions $2 pay delivered when the turns that give are
-- settled, and refunded when the take-back is.
SELECT FROM (
    SELECT ledger.advance_orders(ARRAY(
        SELECT o.order_id FROM ledger.purchase_order o WHERE o.purchase_id = ANY($1::bigint[])
        UNION ALL
        SELECT o.order_id FROM ledger.purchase_order o WHERE o.subscription_id = ANY($2::bigint[])))) AS advanced

-- name: read_newest_orders
-- Orders: returns those of customers ($1), newest first, at most $2, with the price that was shown.
SELECT o.order_id::text AS order_id, head.name AS customer, o.product_id, o.quantity, o.environment::text AS environment,
       o.state::text AS state, o.cause, o.created_at, o.expires_at, o.paid_at, o.transaction_id,
       ARRAY(SELECT d.delivery_id::text FROM ledger.delivery d WHERE d.order_id = o.order_id ORDER BY d.delivery_id)
           AS delivery_ids, o.price_milliunits, o.currency
FROM ledger.purchase_order o
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE o.customer_id = ANY($1::bigint[])
ORDER BY o.created_at DESC, o.order_id DESC LIMIT $2::int

-- name: read_order_changes
-- Orders: returns the changes of orders ($1), newest first, at most $2 of each.
SELECT n.order_id, c.state::text AS state, c.cause, c.code, c.changed_at
FROM unnest($1::text[]) WITH ORDINALITY AS n(order_id, place)
CROSS JOIN LATERAL (
    SELECT c.* FROM ledger.order_change c WHERE c.order_id = n.order_id::uuid
    ORDER BY c.ordinal DESC LIMIT $2::int) c
ORDER BY n.place, c.ordinal DESC
