-- What is stored about a customer, a receipt or a subscription.

-- name: find_receipts
-- Returns receipts of app $1 and customer $2 (nulls: all) or with id $3, newest first, at most $4.
SELECT r.receipt_id, a.bundle_id, r.form::text AS form, r.vouched,
       r.environment::text AS environment, r.outcome::text AS outcome, r.reason, r.received_at,
       GREATEST(r.asked_at, s.confirmed_at) AS asked_at,
       GREATEST(r.verified_at, s.confirmed_at) AS verified_at, GREATEST(s.due_at, s.scheduled_for) AS due_at,
       s.lane::text AS lane, s.attempts, s.leased_by IS NOT NULL AS leased,
       ARRAY(SELECT c.name FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
             WHERE u.receipt_id = r.receipt_id ORDER BY c.name COLLATE "C") AS customers,
       ARRAY(SELECT b.original_transaction_id
             FROM ledger.receipt_subscription l JOIN ledger.subscription b USING (subscription_id)
             WHERE l.receipt_id = r.receipt_id ORDER BY b.original_transaction_id COLLATE "C") AS subscriptions
FROM ledger.receipt r
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id)
WHERE ($1::text IS NULL OR a.bundle_id = $1::text)
  AND ($2::text IS NULL OR EXISTS (
        SELECT FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
        WHERE u.receipt_id = r.receipt_id AND c.name = $2::text))
  AND ($3::bigint IS NULL OR r.receipt_id = $3::bigint)
ORDER BY r.receipt_id DESC LIMIT $4::int

-- name: hold_snapshot
-- Makes all reads of the transaction see one moment, whatever is settled meanwhile. Explanations, exports of a
-- customer and verification run it.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: read_standings
-- Returns the status of customer $1's receipts at Apple, oldest first, at most $2, for explanations and exports of a
-- customer.
SELECT r.receipt_id, r.received_at, GREATEST(r.asked_at, s.confirmed_at) AS asked_at,
       GREATEST(r.verified_at, s.confirmed_at) AS verified_at, r.outcome::text AS outcome, r.reason, r.rejections,
       r.rejected_since, GREATEST(s.due_at, s.scheduled_for) AS due_at
FROM ledger.receipt r
JOIN ledger.upload u USING (receipt_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id)
WHERE u.customer_id = $1::bigint
ORDER BY r.receipt_id LIMIT $2::int

-- name: customer_subscriptions
-- Returns the subscriptions that customer $2 of app $1 owns now, at most $3.
SELECT v.environment, v.original_transaction_id, v.subscription_group_identifier, v.product_id, v.state, v.reason, v.entitled,
       v.expires_at, v.entitled_until, v.will_renew, v.renews_to_product_id, v.flags, v.periods, v.started_at, v.as_of,
       v.checked_at, v.plan, v.payment_number, v.payments, v.commitment_ends_at, v.next_payment, v.seats
FROM perennial.subscription_now v
WHERE v.bundle_id = $1::text AND v.customer = $2::text
ORDER BY v.environment, v.original_transaction_id COLLATE "C" LIMIT $3::int

-- name: customer_purchases
-- Returns the one-time purchases that customer $2 of app $1 owns now, at most $3.
SELECT v.environment, v.transaction_id, v.original_transaction_id, v.product_id, v.quantity, v.purchased_at, v.revoked_at
FROM perennial.purchase_now v
WHERE v.bundle_id = $1::text AND v.customer = $2::text
ORDER BY v.environment, v.purchased_at, v.transaction_id COLLATE "C", v.product_id COLLATE "C" LIMIT $3::int

-- name: customer_timeline
-- Returns the present timelines of the subscriptions that customer $2 of app $1 owns, span by span: the newest $3, in
-- order.
SELECT t.* FROM (
    SELECT s.environment::text AS environment, s.original_transaction_id, lower(p.valid) AS valid_from,
           upper(p.valid) AS valid_until, p.state::text AS state, p.reason::text AS reason, p.entitled, p.product_id,
           p.allowed_until
    FROM ledger.app a
    JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = $2::text
    JOIN ledger.ownership o ON o.customer_id = c.customer_id AND upper_inf(o.known) AND o.valid @> now()
    JOIN ledger.subscription s ON s.subscription_id = o.subscription_id
    JOIN ledger.subscription_span p ON p.subscription_id = s.subscription_id AND upper_inf(p.known)
    WHERE a.bundle_id = $1::text
    ORDER BY lower(p.valid) DESC NULLS LAST LIMIT $3::int) t
ORDER BY t.environment, t.original_transaction_id COLLATE "C", t.valid_from NULLS FIRST

-- name: customer_balances
-- Returns what acknowledged deliveries gave customer $2 of app $1, by any of the customer's names, of each credit, less
-- what they took back.
WITH head AS MATERIALIZED (
    SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id
    FROM ledger.app a JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = $2::text
    WHERE a.bundle_id = $1::text
)
SELECT d.environment::text AS environment, d.credit,
       sum(CASE WHEN d.turn % 2 = 1 THEN d.units ELSE -d.units END)::bigint AS units
FROM (SELECT h.customer_id FROM head h
      UNION ALL
      SELECT c.customer_id FROM head h JOIN ledger.customer c ON c.merged_into = h.customer_id) name
JOIN ledger.delivery d USING (customer_id)
WHERE d.credit IS NOT NULL AND d.skip_reason IS NULL
  AND NOT EXISTS (SELECT FROM ledger.due_delivery q WHERE q.delivery_id = d.delivery_id)
GROUP BY d.environment, d.credit
ORDER BY d.environment, d.credit

-- name: customer_unverified
-- Counts the receipts of customer $2 of app $1 that Apple never vouched for; also the end of the operator's provisional
-- access.
SELECT count(*) AS receipts, max((
           SELECT max(p.until) FROM ledger.provisional p
           WHERE p.customer_id = u.customer_id AND p.receipt_id = u.receipt_id AND p.until > now()
             AND NOT EXISTS (
                 SELECT FROM ledger.provisional later
                 WHERE later.customer_id = p.customer_id AND later.receipt_id = p.receipt_id
                   AND later.product_id = p.product_id AND later.stated_at > p.stated_at))) AS provisional_until
FROM ledger.app a
JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = $2::text
JOIN ledger.upload u USING (customer_id)
JOIN ledger.receipt r USING (receipt_id)
WHERE a.bundle_id = $1::text AND r.verified_at IS NULL

-- name: find_customer
-- Explain: returns app $1, the customer that the name $2 meant at the instant $3 (null when unknown), that instant
-- ($3 null: now), and now.
SELECT a.app_id, ledger.customer_at(c.customer_id, LEAST(COALESCE($3::timestamptz, now()), now())) AS customer_id,
       COALESCE($3::timestamptz, now()) AS at, now() AS now
FROM ledger.app a
LEFT JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = $2::text
WHERE a.bundle_id = $1::text

-- name: list_customers
-- List: returns the customers of app $1 after the name $2 whose names begin with $3, in the order of their bytes, at most
-- $4. No name is longer than 255 characters, so none that begins with $3 comes after $3 and 256 times the last character.
SELECT c.name, head.name AS merged_into, c.created_at
FROM ledger.customer c LEFT JOIN ledger.customer head ON head.customer_id = c.merged_into
WHERE c.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text) AND c.erased_at IS NULL
  AND c.name ~>~ $2::text AND c.name ~>=~ $3::text AND c.name ~<~ ($3::text || repeat(chr(1114111), 256))
ORDER BY c.name USING ~<~ LIMIT $4::int

-- name: list_subscriptions
-- List: looks at up to $8 subscriptions of app $1 after the one with the environment $2 and id $3, up to the environment
-- $4, and returns those in the state $6 and of the product $7 (nulls: any), at most $5. Every row has the place of the last
-- one looked at, where there may be more; a row without an id: none was found.
SELECT f.*, l.environment::text AS last_environment, l.original_transaction_id AS last_id
FROM (SELECT) one
LEFT JOIN (
    SELECT s.environment, s.original_transaction_id FROM ledger.subscription s
    WHERE s.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text) AND s.version > 0
      AND (s.environment, s.original_transaction_id) > ($2::text::ledger.environment, $3::text)
      AND s.environment <= $4::text::ledger.environment
    ORDER BY s.environment, s.original_transaction_id OFFSET $8::int - 1 LIMIT 1) l ON true
LEFT JOIN (
    SELECT v.customer, v.environment, v.original_transaction_id, v.subscription_group_identifier, v.product_id, v.state,
           v.reason, v.entitled, v.expires_at, v.entitled_until, v.will_renew, v.renews_to_product_id, v.flags, v.periods,
           v.started_at, v.as_of, v.checked_at, v.plan, v.payment_number, v.payments, v.commitment_ends_at,
           v.next_payment, v.seats
    FROM (
        SELECT s.subscription_id, s.environment, s.original_transaction_id FROM ledger.subscription s
        WHERE s.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text) AND s.version > 0
          AND (s.environment, s.original_transaction_id) > ($2::text::ledger.environment, $3::text)
          AND s.environment <= $4::text::ledger.environment
        ORDER BY s.environment, s.original_transaction_id LIMIT $8::int) p
    CROSS JOIN LATERAL (
        SELECT v.* FROM ledger.subscription_state v WHERE v.subscription_id = p.subscription_id OFFSET 0) v
    WHERE ($6::text IS NULL OR v.state = $6::text) AND ($7::text IS NULL OR v.product_id = $7::text)
    ORDER BY p.environment, p.original_transaction_id LIMIT $5::int) f ON true
ORDER BY f.environment, f.original_transaction_id

-- name: list_receipts
-- List: returns the receipts of app $1, of customer $2 alone if given, before the receipt $3, newest first, at most $4.
WITH page AS MATERIALIZED (
    (SELECT r.receipt_id FROM ledger.receipt r
     WHERE $2::text IS NULL AND r.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text)
       AND r.receipt_id < $3::bigint
     ORDER BY r.receipt_id DESC LIMIT $4::int)
    UNION ALL
    (SELECT u.receipt_id FROM ledger.upload u
     WHERE u.receipt_id < $3::bigint AND u.customer_id = (
         SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c
         WHERE c.app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = $1::text) AND c.name = $2::text)
     ORDER BY u.receipt_id DESC LIMIT $4::int)
)
SELECT r.receipt_id, a.bundle_id, r.form::text AS form, r.vouched,
       r.environment::text AS environment, r.outcome::text AS outcome, r.reason, r.received_at,
       GREATEST(r.asked_at, s.confirmed_at) AS asked_at, GREATEST(r.verified_at, s.confirmed_at) AS verified_at,
       GREATEST(s.due_at, s.scheduled_for) AS due_at,
       ARRAY(SELECT c.name FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
             WHERE u.receipt_id = r.receipt_id ORDER BY c.name COLLATE "C") AS customers,
       ARRAY(SELECT b.original_transaction_id
             FROM ledger.receipt_subscription l JOIN ledger.subscription b USING (subscription_id)
             WHERE l.receipt_id = r.receipt_id ORDER BY b.original_transaction_id COLLATE "C") AS subscriptions
FROM page p
JOIN ledger.receipt r USING (receipt_id)
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id)
ORDER BY r.receipt_id DESC

-- name: read_sources
-- Explain: returns everything that gives, or gave, customer $1 an entitlement at $2, as known now. For each entitlement
-- the first row wins: the order is that of ledger.entitlements.
SELECT s.entitlement, s.granted, s.until, s.product_id, s.environment::text AS environment, e.checked_at,
       s.subscription_id, s.purchase_id, h.given_by, h.reason, h.ended_by, h.end_reason, lower(h.valid) AS since
FROM ledger.entitlement_sources(ARRAY[$1::bigint], $2::timestamptz, 'infinity') e
CROSS JOIN LATERAL (SELECT (e.source).*) s
LEFT JOIN ledger.manual_grant h USING (manual_grant_id)
ORDER BY s.entitlement COLLATE "C", s.place, s.granted DESC, s.environment, s.until DESC NULLS FIRST,
         s.basis COLLATE "C" DESC, s.state COLLATE "C", e.checked_at DESC, s.product_id COLLATE "C", s.subscription_id,
         s.purchase_id

-- name: read_holdings
-- Explain: returns the subscriptions in the receipts of customer $1 and those they own, with owner, start and cause, at
-- most $2.
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by, s.version,
       ledger.as_of(s, d) AS as_of, ledger.checked_at(s, d) AS checked_at, s.recorded_at,
       ledger.next_check_at(s, d) AS next_check_at, s.renewal, ledger.renewal_as_of(s, d) AS renewal_as_of,
       s.renewal_path, s.suspected,
       s.leeway_ms, GREATEST(d.due_at, d.scheduled_for) AS due_at, c.name AS owner, o.customer_id IS NOT DISTINCT FROM $1::bigint AS is_owner,
       lower(o.valid) AS owned_since, o.cause AS owned_because, (
           SELECT CASE WHEN e.detail ? 'from_pointer' THEN 'from_pointer' ELSE e.kind::text END FROM ledger.event e
           WHERE e.subscription_id = s.subscription_id AND e.kind IN ('ownership.assigned', 'ownership.transferred')
           ORDER BY e.version DESC, e.ordinal DESC LIMIT 1) AS owned_by, EXISTS (
           SELECT FROM ledger.receipt_subscription l JOIN ledger.upload u USING (receipt_id)
           WHERE l.subscription_id = s.subscription_id AND u.customer_id = o.customer_id) AS owner_sent
FROM ledger.subscription s
LEFT JOIN ledger.poll_schedule d ON d.receipt_id = s.polled_by
LEFT JOIN ledger.ownership o
    ON o.subscription_id = s.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid)
LEFT JOIN ledger.customer c USING (customer_id)
WHERE s.version > 0 AND s.subscription_id IN (
    SELECT l.subscription_id FROM ledger.receipt_subscription l JOIN ledger.upload u USING (receipt_id)
    WHERE u.customer_id = $1::bigint
    UNION
    SELECT w.subscription_id FROM ledger.ownership w WHERE w.customer_id = $1::bigint AND w.subscription_id IS NOT NULL)
ORDER BY s.environment, s.original_transaction_id COLLATE "C"
LIMIT $2::int

-- name: read_bought
-- Explain: returns the one-time purchases in the receipts of customer $1 and those they own, with owner, start and cause,
-- at most $2.
SELECT p.purchase_id, p.app_id, p.environment::text AS environment, p.original_transaction_id, p.product_id, p.version,
       p.facts, p.transaction_ids, d.kind::text AS kind, ledger.as_of(p, poller) AS as_of, p.recorded_at,
       ledger.checked_at(p, poller) AS checked_at, p.polled_by, ledger.next_check_at(p, poller) AS next_check_at,
       c.name AS owner,
       o.customer_id IS NOT DISTINCT FROM $1::bigint AS is_owner, lower(o.valid) AS owned_since,
       o.cause AS owned_because, (
           SELECT CASE WHEN e.detail ? 'from_pointer' THEN 'from_pointer' ELSE e.kind::text END FROM ledger.event e
           WHERE e.purchase_id = p.purchase_id AND e.kind IN ('ownership.assigned', 'ownership.transferred')
           ORDER BY e.version DESC, e.ordinal DESC LIMIT 1) AS owned_by, EXISTS (
           SELECT FROM ledger.receipt_purchase l JOIN ledger.upload u USING (receipt_id)
           WHERE l.purchase_id = p.purchase_id AND u.customer_id = o.customer_id) AS owner_sent
FROM ledger.purchase p
LEFT JOIN ledger.product d USING (app_id, product_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
LEFT JOIN ledger.ownership o ON o.purchase_id = p.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid)
LEFT JOIN ledger.customer c USING (customer_id)
WHERE p.version > 0 AND p.purchase_id IN (
    SELECT l.purchase_id FROM ledger.receipt_purchase l JOIN ledger.upload u USING (receipt_id)
    WHERE u.customer_id = $1::bigint
    UNION
    SELECT w.purchase_id FROM ledger.ownership w WHERE w.customer_id = $1::bigint AND w.purchase_id IS NOT NULL)
ORDER BY p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
LIMIT $2::int
