-- Customers: grants, merges, hand-overs, exports and erasure.

-- name: find_customers
-- Returns the keys of known customers ($1 apps, $2 names), and their names. For a name merged into another customer it
-- returns that customer's key. Locks them against merge and erasure until the end of the transaction. Intake, manual
-- grants and assignments run it.
SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id, c.app_id, c.name,
       COALESCE((SELECT h.name FROM ledger.customer h WHERE h.customer_id = c.merged_into), c.name) AS called
FROM unnest($1::int[], $2::text[]) AS n(app_id, name)
JOIN ledger.customer c ON c.app_id = n.app_id AND c.name = n.name
FOR KEY SHARE OF c

-- name: forget_grant_requests
-- Manual grants: deletes Idempotency-Keys that are older than 24 hours, at most $1.
DELETE FROM ledger.grant_request r
WHERE (r.app_id, r.request_key) IN (
    SELECT g.app_id, g.request_key FROM ledger.grant_request g
    WHERE g.asked_at <= now() - interval '24 hours' ORDER BY g.asked_at LIMIT $1::int)

-- name: lock_owned
-- Assign, merge, split and erase: locks and reads subscriptions in natural-key order: those that customers ($1) own,
-- those that receipts ($2) poll, and those with the id $4 in app $3.
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by, s.version,
       ledger.as_of(s, poller) AS as_of, ledger.checked_at(s, poller) AS checked_at, s.recorded_at,
       ledger.next_check_at(s, poller) AS next_check_at, s.renewal, ledger.renewal_as_of(s, poller) AS renewal_as_of,
       s.renewal_path, s.suspected, s.leeway_ms
FROM ledger.subscription s
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
WHERE s.subscription_id IN (
    SELECT o.subscription_id FROM ledger.ownership o
    WHERE o.customer_id = ANY($1::bigint[]) AND upper_inf(o.known) AND upper_inf(o.valid)
    UNION
    SELECT p.subscription_id FROM ledger.subscription p WHERE p.polled_by = ANY($2::bigint[])
    UNION
    SELECT n.subscription_id FROM ledger.subscription n
    WHERE n.app_id = $3::int AND n.environment = ANY(enum_range(NULL::ledger.environment))
      AND n.original_transaction_id = $4::text)
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"
FOR NO KEY UPDATE OF s

-- name: lock_owned_purchases
-- Assign, merge, split and erase: locks and reads one-time purchases in natural-key order, after the subscriptions:
-- those that customers ($1) own, those that receipts ($2) poll, and those with the id $4 in app $3.
SELECT p.purchase_id, p.app_id, p.environment::text AS environment, p.original_transaction_id, p.product_id, p.version,
       p.facts, p.transaction_ids, d.kind::text AS kind, ledger.as_of(p, poller) AS as_of, p.recorded_at, p.polled_by,
       ledger.next_check_at(p, poller) AS next_check_at
FROM ledger.purchase p
LEFT JOIN ledger.product d USING (app_id, product_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = p.polled_by
WHERE p.purchase_id IN (
    SELECT o.purchase_id FROM ledger.ownership o
    WHERE o.customer_id = ANY($1::bigint[]) AND upper_inf(o.known) AND upper_inf(o.valid)
    UNION
    SELECT d.purchase_id FROM ledger.purchase d WHERE d.polled_by = ANY($2::bigint[])
    UNION
    SELECT n.purchase_id FROM ledger.purchase n
    WHERE n.app_id = $3::int AND n.environment = ANY(enum_range(NULL::ledger.environment))
      AND n.original_transaction_id = $4::text)
ORDER BY p.app_id, p.environment, p.original_transaction_id COLLATE "C", p.product_id COLLATE "C"
FOR NO KEY UPDATE OF p

-- name: lock_customers
-- Merge, split and erase: locks customers ($1) against all other transactions, uploads included, after what they own.
SELECT customer_id, name, COALESCE(merged_into, customer_id) AS head_id
FROM ledger.customer WHERE customer_id = ANY($1::bigint[]) ORDER BY customer_id FOR UPDATE

-- name: count_owned
-- Customer: counts what customers ($1) own; repeated once everything is locked.
SELECT count(*) AS things FROM ledger.ownership o
WHERE o.customer_id = ANY($1::bigint[]) AND upper_inf(o.known) AND upper_inf(o.valid)

-- name: find_named_customers
-- Customer: returns the customers behind names ($2) of app $1, with every name merged into theirs; is_head marks the
-- customer into whom the others were merged.
SELECT p.customer_id, p.name, p.merged_into IS NULL AS is_head, COALESCE(p.merged_into, p.customer_id) AS head_id
FROM ledger.customer p
WHERE p.app_id = $1::int AND COALESCE(p.merged_into, p.customer_id) IN (
    SELECT COALESCE(c.merged_into, c.customer_id) FROM ledger.customer c
    WHERE c.app_id = $1::int AND c.name = ANY($2::text[]))
ORDER BY p.customer_id

-- name: read_receipts_of
-- Erase: returns the receipts of customers ($1), uploaded, sent for their orders, or made by notifications about what they own, and
-- whether they are of no other customer.
SELECT n.receipt_id,
       NOT EXISTS (SELECT FROM ledger.upload o
                   WHERE o.receipt_id = n.receipt_id AND o.customer_id <> ALL($1::bigint[]) OFFSET 0)
       AND NOT EXISTS (SELECT FROM ledger.order_receipt x JOIN ledger.purchase_order o USING (order_id)
                       WHERE x.receipt_id = n.receipt_id AND o.customer_id <> ALL($1::bigint[]) OFFSET 0) AS sole
FROM (
    SELECT u.receipt_id FROM ledger.upload u WHERE u.customer_id = ANY($1::bigint[])
    UNION
    SELECT x.receipt_id FROM ledger.purchase_order o JOIN ledger.order_receipt x USING (order_id)
    WHERE o.customer_id = ANY($1::bigint[])
    UNION
    -- A notification made it, and it holds nothing of another customer.
    SELECT r.receipt_id
    FROM ledger.ownership o
    CROSS JOIN LATERAL (
        SELECT l.receipt_id FROM ledger.receipt_subscription l WHERE l.subscription_id = o.subscription_id
        UNION ALL
        SELECT l.receipt_id FROM ledger.receipt_purchase l WHERE l.purchase_id = o.purchase_id) l
    JOIN ledger.receipt r ON r.receipt_id = l.receipt_id AND r.form = 'transaction_id' AND r.erased_at IS NULL
    WHERE o.customer_id = ANY($1::bigint[]) AND upper_inf(o.known) AND upper_inf(o.valid)
      AND NOT EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
      AND NOT EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id)
      AND NOT EXISTS (
          SELECT FROM ledger.receipt_subscription t JOIN ledger.ownership w USING (subscription_id)
          WHERE t.receipt_id = r.receipt_id AND upper_inf(w.known) AND upper_inf(w.valid) AND w.customer_id <> ALL($1::bigint[]))
      AND NOT EXISTS (
          SELECT FROM ledger.receipt_purchase t JOIN ledger.ownership w USING (purchase_id)
          WHERE t.receipt_id = r.receipt_id AND upper_inf(w.known) AND upper_inf(w.valid) AND w.customer_id <> ALL($1::bigint[]))) n
ORDER BY n.receipt_id

-- name: raise_versions
-- Customer: raises versions after a change of owner ($2 versions, $3 recorded) of each subscription ($1), and of each
-- one-time purchase ($4, $5 and $6 likewise).
WITH subscriptions AS (
    UPDATE ledger.subscription s SET version = n.version, recorded_at = n.recorded_at
    FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) AS n(subscription_id, version, recorded_at)
    WHERE s.subscription_id = n.subscription_id
)
UPDATE ledger.purchase p SET version = n.version, recorded_at = n.recorded_at
FROM unnest($4::bigint[], $5::bigint[], $6::timestamptz[]) AS n(purchase_id, version, recorded_at)
WHERE p.purchase_id = n.purchase_id

-- name: find_grant_request
-- Manual grants: returns the grant that Idempotency-Key $2 made in app $1 within 24 hours before $3, and what was asked.
SELECT r.request, h.entitlement, lower(h.valid) AS since, upper(h.valid) AS until, h.given_by, h.reason, h.ended_by,
       h.end_reason
FROM ledger.grant_request r JOIN ledger.manual_grant h USING (manual_grant_id)
WHERE r.app_id = $1::int AND r.request_key = $2::text AND r.asked_at > $3::timestamptz - interval '24 hours'

-- name: insert_grant_request
-- Manual grants: notes that Idempotency-Key $2 of app $1, which asked $3, made the grant of entitlement $5 that customer $4
-- got at $6. Returns no row where another request took the key within 24 hours.
INSERT INTO ledger.grant_request AS r (app_id, request_key, request, manual_grant_id, asked_at)
SELECT $1::int, $2::text, $3::bytea, h.manual_grant_id, $6::timestamptz
FROM ledger.manual_grant h
WHERE h.customer_id = $4::bigint AND h.entitlement = $5::text AND lower(h.known) = $6::timestamptz
  AND upper_inf(h.known) AND h.ended_by IS NULL
ON CONFLICT (app_id, request_key) DO UPDATE
SET request = excluded.request, manual_grant_id = excluded.manual_grant_id, asked_at = excluded.asked_at
WHERE r.asked_at <= excluded.asked_at - interval '24 hours'
RETURNING r.request_key

-- name: lock_grantee
-- Manual grants: locks the grants of customer $1, so that one operator at a time can change them. Merge and erase run
-- it too.
SELECT customer_id FROM ledger.customer WHERE customer_id = $1::bigint FOR NO KEY UPDATE

-- name: read_manual_clock
-- Manual grants: returns the instant to record, later than all earlier records of customer $1, whose grants are locked.
SELECT GREATEST(clock_timestamp(), max(lower(known)) + interval '1 microsecond') AS recorded_at
FROM ledger.manual_grant WHERE customer_id = $1::bigint

-- name: end_manual_grants
-- Manual grants: ends at $3 the grants of entitlement $2 (null: of all) to customer $1, by $4 because of $5; returns
-- the ended grants and when they would have ended.
WITH ended AS (
    UPDATE ledger.manual_grant h SET known = tstzrange(lower(h.known), $3::timestamptz)
    WHERE h.customer_id = $1::bigint AND ($2::text IS NULL OR h.entitlement = $2::text)
      AND upper_inf(h.known) AND h.valid @> $3::timestamptz
    RETURNING h.*
), stated AS (
    INSERT INTO ledger.manual_grant
        (customer_id, entitlement, valid, known, given_by, reason, ended_by, end_reason)
    SELECT customer_id, entitlement, tstzrange(lower(valid), $3::timestamptz), tstzrange($3::timestamptz, NULL), given_by,
           reason, $4::text, $5::text
    FROM ended WHERE lower(valid) < $3::timestamptz
)
SELECT e.entitlement, lower(e.valid) AS since, upper(e.valid) AS until, e.given_by, e.reason, $4::text AS ended_by,
       $5::text AS end_reason
FROM ended e
ORDER BY e.entitlement COLLATE "C"

-- name: insert_manual_grant
-- Manual grants: grants customer $1 the entitlement $2 until $3 (null: without an end) from $4, by $5 because of $6.
INSERT INTO ledger.manual_grant (customer_id, entitlement, valid, known, given_by, reason)
VALUES ($1::bigint, $2::text, tstzrange($4::timestamptz, $3::timestamptz), tstzrange($4::timestamptz, NULL), $5::text, $6::text)
RETURNING entitlement, lower(valid) AS since, upper(valid) AS until, given_by, reason, ended_by, end_reason

-- name: merge_uploads
-- Merge: moves the uploads and statements of customer $1 to customer $2; an upload of both becomes one upload.
WITH both_have AS (
    UPDATE ledger.upload u SET settled = u.settled AND f.settled
    FROM ledger.upload f
    WHERE u.customer_id = $2::bigint AND f.customer_id = $1::bigint AND f.receipt_id = u.receipt_id
    RETURNING u.receipt_id
), gone AS (
    DELETE FROM ledger.upload f
    WHERE f.customer_id = $1::bigint AND f.receipt_id IN (SELECT receipt_id FROM both_have)
), stated AS (
    UPDATE ledger.stated_price SET customer_id = $2::bigint WHERE customer_id = $1::bigint
), promised AS (
    INSERT INTO ledger.provisional (customer_id, receipt_id, product_id, stated_at, since, until, environment)
    SELECT DISTINCT ON (p.receipt_id, p.product_id) $2::bigint, p.receipt_id, p.product_id, clock_timestamp(), p.since, p.until,
           p.environment
    FROM ledger.provisional p JOIN ledger.receipt r USING (receipt_id)
    WHERE p.customer_id = $1::bigint AND r.first_verified_at IS NULL AND NOT EXISTS (
        SELECT FROM ledger.provisional q
        WHERE q.customer_id = $2::bigint AND q.receipt_id = p.receipt_id AND q.product_id = p.product_id
          AND q.until >= p.until)
    ORDER BY p.receipt_id, p.product_id, p.stated_at DESC
)
UPDATE ledger.upload u SET customer_id = $2::bigint, uploaded_as = COALESCE(u.uploaded_as, $1::bigint)
WHERE u.customer_id = $1::bigint AND NOT EXISTS (
    SELECT FROM ledger.upload i WHERE i.customer_id = $2::bigint AND i.receipt_id = u.receipt_id)

-- name: merge_names
-- Merge: assigns the names of customers ($1) to customer $2 from $3 on.
WITH renamed AS (
    UPDATE ledger.customer c SET merged_into = $2::bigint WHERE c.customer_id = ANY($1::bigint[])
), ended AS (
    UPDATE ledger.customer_merge m SET applies = tstzrange(lower(m.applies), $3::timestamptz)
    WHERE m.customer_id = ANY($1::bigint[]) AND upper_inf(m.applies)
    RETURNING m.customer_id
)
INSERT INTO ledger.customer_merge (customer_id, into_id, applies)
SELECT n.customer_id, $2::bigint, tstzrange($3::timestamptz, NULL) FROM unnest($1::bigint[]) AS n(customer_id)
-- The old row of a name ends before its new one begins.
WHERE (SELECT count(*) FROM ended) >= 0

-- name: read_manual_grants
-- Customer: returns the manual grants of customers ($1), as known now, newest first, at most $2.
SELECT h.entitlement, lower(h.valid) AS since, upper(h.valid) AS until, h.given_by, h.reason, h.ended_by, h.end_reason
FROM ledger.manual_grant h
WHERE h.customer_id = ANY($1::bigint[]) AND upper_inf(h.known)
ORDER BY lower(h.valid) DESC, h.entitlement COLLATE "C" LIMIT $2::int

-- name: read_names_under
-- Split: returns customer $1 and the names that were merged into it, and into those.
SELECT n.id AS customer_id FROM unnest(ledger.names_under($1::bigint)) AS n(id)

-- name: read_merged_contents
-- Split: returns the subscriptions and purchases of customer $2 that go with the names $1: those that came with one of
-- these, and those that arrived meanwhile by a token of theirs or for an order of theirs. What a token or a proof gives to
-- another name of the customer stays, and so does what a person assigned since.
SELECT o.subscription_id, o.purchase_id
FROM ledger.ownership o
CROSS JOIN LATERAL ledger.claim_of(o) b
LEFT JOIN ledger.purchase p ON p.purchase_id = o.purchase_id
LEFT JOIN ledger.subscription s ON s.subscription_id = o.subscription_id
CROSS JOIN LATERAL (
    SELECT COALESCE(p.app_id, s.app_id) AS app_id, lower(COALESCE(p.app_account_token, s.app_account_token)) AS token) t
LEFT JOIN LATERAL (
    SELECT c.customer_id
    FROM (
        SELECT r.customer_id, true AS is_ordered, NULL COLLATE "C" AS name FROM ledger.purchase_order r
        WHERE r.app_account_token = ledger.account_token(t.token) AND r.app_id = t.app_id
        UNION ALL
        SELECT c.customer_id, false, c.name COLLATE "C" FROM ledger.customer c
        WHERE c.app_id = t.app_id AND c.name IN (t.token, upper(t.token))
        ORDER BY is_ordered DESC, name DESC LIMIT 1) n
    JOIN ledger.customer c ON c.customer_id = n.customer_id AND COALESCE(c.merged_into, c.customer_id) = $2::bigint) named ON true
LEFT JOIN LATERAL (
    SELECT r.customer_id
    FROM (
        SELECT r.customer_id, r.created_at, true AS is_paid, r.cause = 'proof' AS is_proved
        FROM ledger.purchase_order r
        WHERE (r.purchase_id = o.purchase_id OR r.subscription_id = o.subscription_id)
          AND r.state = 'paid' AND r.cause IN ('transaction', 'proof', 'order')
        UNION ALL
        SELECT r.customer_id, r.created_at, false, false
        FROM ledger.order_receipt x JOIN ledger.purchase_order r USING (order_id)
        WHERE b.cause = 'proof' AND x.is_proved AND r.product_id = p.product_id
          AND x.receipt_id IN (SELECT l.receipt_id FROM ledger.receipt_purchase l WHERE l.purchase_id = o.purchase_id)) r
    -- It arrived after the order's customer was merged, or a proof would have claimed it without the merge, too.
    WHERE r.customer_id = ANY(ledger.names_under(b.customer_id)) OR r.is_proved AND b.cause IN ('upload', 'pointer')
    ORDER BY r.is_paid DESC, r.created_at DESC LIMIT 1) ordered ON true
WHERE o.customer_id = $2::bigint AND upper_inf(o.known) AND upper_inf(o.valid)
  AND CASE WHEN b.cause = 'assignment' THEN b.customer_id
           ELSE COALESCE(named.customer_id, ordered.customer_id, b.customer_id) END = ANY($1::bigint[])

-- name: split_name
-- Split: gives customer $1 their own name back from $3 on, with the uploads made under it before the merge. So it does with
-- the names that go along ($2, that of customer $1 among them): they mean this customer again.
WITH renamed AS (
    UPDATE ledger.customer c SET merged_into = NULLIF($1::bigint, c.customer_id) WHERE c.customer_id = ANY($2::bigint[])
), ended AS (
    UPDATE ledger.customer_merge m SET applies = tstzrange(lower(m.applies), $3::timestamptz)
    WHERE m.customer_id = ANY($2::bigint[]) AND upper_inf(m.applies)
    RETURNING m.customer_id
), merged AS (
    INSERT INTO ledger.customer_merge (customer_id, into_id, applies)
    SELECT n.customer_id, $1::bigint, tstzrange($3::timestamptz, NULL) FROM unnest($2::bigint[]) AS n(customer_id)
    -- The old row of a name ends before its new one begins.
    WHERE n.customer_id <> $1::bigint AND (SELECT count(*) FROM ended) >= 0
)
UPDATE ledger.upload u SET customer_id = $1::bigint, uploaded_as = NULLIF(u.uploaded_as, $1::bigint)
WHERE u.uploaded_as = ANY($2::bigint[])

-- name: erase_uploads
-- Erase: deletes the uploads of customers ($1), and the statements they were imported with.
WITH words AS (
    DELETE FROM ledger.provisional p WHERE p.customer_id = ANY($1::bigint[])
)
DELETE FROM ledger.upload u WHERE u.customer_id = ANY($1::bigint[])

-- name: erase_tokens
-- Erase: removes the account tokens in what customers ($1) owned or receipts ($2) contained, Apple's notifications, texts
-- kept as examples, what channels said differently and what support calls asked about it, unless another customer owns it
-- now; also wherever a token is one of the customers' names or orders. Their digests are listed, so that no later answer
-- brings them back.
WITH names AS MATERIALIZED (
    SELECT c.app_id, lower(c.name) AS name FROM ledger.customer c WHERE c.customer_id = ANY($1::bigint[])
    UNION
    SELECT o.app_id, o.app_account_token::text FROM ledger.purchase_order o WHERE o.customer_id = ANY($1::bigint[])
), had AS MATERIALIZED (
    SELECT o.subscription_id, o.purchase_id FROM ledger.ownership o WHERE o.customer_id = ANY($1::bigint[])
    UNION
    SELECT l.subscription_id, NULL FROM ledger.receipt_subscription l WHERE l.receipt_id = ANY($2::bigint[])
    UNION
    SELECT NULL, l.purchase_id FROM ledger.receipt_purchase l WHERE l.receipt_id = ANY($2::bigint[])
), theirs AS MATERIALIZED (
    SELECT t.subscription_id, t.purchase_id
    FROM had t
    LEFT JOIN ledger.subscription s USING (subscription_id)
    LEFT JOIN ledger.purchase p USING (purchase_id)
    WHERE NOT EXISTS (
            SELECT FROM ledger.ownership w
            WHERE (w.subscription_id = t.subscription_id OR w.purchase_id = t.purchase_id)
              AND upper_inf(w.known) AND upper_inf(w.valid) AND w.customer_id <> ALL($1::bigint[]))
       OR (COALESCE(s.app_id, p.app_id), lower(COALESCE(s.app_account_token, p.app_account_token)))
            IN (SELECT app_id, name FROM names)
), listed AS (
    INSERT INTO ledger.erased_token (app_id, digest)
    SELECT t.app_id, sha256(convert_to(t.token, 'UTF8'))
    FROM (
        SELECT n.app_id, n.name AS token FROM names n
        UNION
        SELECT s.app_id, lower(p.app_account_token)
        FROM theirs JOIN ledger.subscription s USING (subscription_id) JOIN ledger.period p USING (subscription_id)
        UNION
        SELECT p.app_id, lower(p.app_account_token) FROM theirs JOIN ledger.purchase p USING (purchase_id)) t
    WHERE t.token IS NOT NULL
    ON CONFLICT DO NOTHING
), periods AS (
    UPDATE ledger.period p SET app_account_token = NULL
    FROM had h
    WHERE p.subscription_id = h.subscription_id AND p.app_account_token IS NOT NULL
      AND (h.subscription_id IN (SELECT subscription_id FROM theirs)
           -- Each period may carry the token of another order.
           OR lower(p.app_account_token) IN (SELECT name FROM names))
), purchases AS (
    UPDATE ledger.purchase p SET app_account_token = NULL, facts = p.facts - 'app_account_token'
    WHERE p.purchase_id IN (SELECT purchase_id FROM theirs)
), notifications AS (
    UPDATE ledger.notification n
    SET body = 'null', texts = NULL, claims = NULL, account_token = NULL,
        effect = CASE WHEN n.effect IN ('asked', 'planned', 'unpolled', 'unshown') THEN 'no_facts' ELSE n.effect END
    WHERE n.notification_id IN (
        SELECT m.notification_id
        FROM (SELECT s.app_id, s.original_transaction_id FROM theirs JOIN ledger.subscription s USING (subscription_id)
              UNION
              SELECT p.app_id, p.original_transaction_id FROM theirs JOIN ledger.purchase p USING (purchase_id)) t
        JOIN ledger.notification m USING (app_id, original_transaction_id)
        UNION
        -- What waits may be about nothing that is known yet.
        SELECT m.notification_id
        FROM names JOIN ledger.notification m ON m.app_id = names.app_id AND m.account_token = names.name)
), examples AS (
    UPDATE ledger.unread_claim u SET example = NULL, original_transaction_id = NULL
    FROM (SELECT s.app_id, s.original_transaction_id FROM theirs JOIN ledger.subscription s USING (subscription_id)
          UNION
          SELECT p.app_id, p.original_transaction_id FROM theirs JOIN ledger.purchase p USING (purchase_id)) t
    WHERE u.app_id = t.app_id AND u.original_transaction_id = t.original_transaction_id
), differences AS (
    DELETE FROM ledger.channel_difference d
    USING (
        SELECT s.app_id, s.environment, s.original_transaction_id FROM theirs JOIN ledger.subscription s USING (subscription_id)
        UNION
        SELECT p.app_id, p.environment, p.original_transaction_id FROM theirs JOIN ledger.purchase p USING (purchase_id)) t
    WHERE d.app_id = t.app_id AND d.environment = t.environment AND d.original_transaction_id = t.original_transaction_id
), support AS (
    UPDATE ledger.support_call c SET request = NULL, reason = NULL
    WHERE c.kind <> 'extend_all'
      AND ((c.app_id, c.subject) IN (
            SELECT s.app_id, s.original_transaction_id FROM theirs JOIN ledger.subscription s USING (subscription_id)
            UNION
            SELECT s.app_id, l.transaction_id
            FROM theirs JOIN ledger.subscription s USING (subscription_id) JOIN ledger.period d USING (subscription_id)
            JOIN ledger.transaction_alias l USING (period_id)
            UNION
            SELECT p.app_id, unnest(p.transaction_ids || p.original_transaction_id)
            FROM theirs JOIN ledger.purchase p USING (purchase_id))
        OR (c.app_id, lower(c.request ->> 'appAccountToken')) IN (SELECT app_id, name FROM names))
), corrections AS (
    DELETE FROM ledger.correction c
    WHERE (c.subscription_id IN (SELECT subscription_id FROM theirs) OR c.purchase_id IN (SELECT purchase_id FROM theirs))
      AND c.fact LIKE '%app\_account\_token'
)
UPDATE ledger.subscription s SET app_account_token = NULL
WHERE s.subscription_id IN (SELECT subscription_id FROM theirs) AND s.app_account_token IS NOT NULL

-- name: erase_customers
-- Erase: gives customers ($1) a random name at $2, and removes the reasons of their manual grants and of other
-- decisions about them, with the Idempotency-Keys of those grants.
WITH requests AS (
    DELETE FROM ledger.grant_request r USING ledger.manual_grant h
    WHERE h.manual_grant_id = r.manual_grant_id AND h.customer_id = ANY($1::bigint[])
), grants AS (
    UPDATE ledger.manual_grant h
    SET reason = 'erased', end_reason = CASE WHEN h.end_reason IS NOT NULL THEN 'erased' END
    WHERE h.customer_id = ANY($1::bigint[])
), moved AS (
    -- A merge copied these grants to another customer, in the same words, and they stayed when it was undone.
    UPDATE ledger.manual_grant h SET reason = 'erased'
    FROM ledger.customer_merge m JOIN ledger.manual_grant f USING (customer_id)
    WHERE m.customer_id = ANY($1::bigint[]) AND h.customer_id = m.into_id AND NOT h.customer_id = ANY($1::bigint[])
      AND (h.entitlement, h.given_by, h.reason) = (f.entitlement, f.given_by, f.reason)
), decisions AS (
    UPDATE ledger.audit a SET detail = jsonb_set(a.detail, '{reason}', '"erased"', false)
    WHERE a.decided_about && $1::bigint[]
)
UPDATE ledger.customer c
SET name = 'erased-' || replace(gen_random_uuid()::text, '-', ''), erased_at = $2::timestamptz
WHERE c.customer_id = ANY($1::bigint[])
RETURNING c.name, c.merged_into IS NULL AS is_head

-- name: erase_orders
-- Erase: removes what is personal in the orders of customers ($1) at $2: the price shown, the device, the key, the
-- account token, what devices reported, which receipts were sent for them, and Idempotency-Keys. Cancels those that are open
-- or paid and not delivered: nothing pays these any more.
WITH theirs AS MATERIALIZED (
    SELECT o.order_id, o.state IN ('created', 'purchasing', 'deferred', 'paid') AS is_unfinished
    FROM ledger.purchase_order o
    WHERE o.customer_id = ANY($1::bigint[]) ORDER BY o.order_id FOR UPDATE
), codes AS (
    UPDATE ledger.order_change c SET code = NULL
    WHERE c.order_id IN (SELECT t.order_id FROM theirs t) AND c.code IS NOT NULL
), receipts AS (
    DELETE FROM ledger.order_receipt x WHERE x.order_id IN (SELECT t.order_id FROM theirs t)
), requests AS (
    DELETE FROM ledger.order_request r WHERE r.order_id IN (SELECT t.order_id FROM theirs t)
)
UPDATE ledger.purchase_order o
SET price_milliunits = NULL, currency = NULL, device = NULL, sealed_key = NULL, app_account_token = gen_random_uuid(),
    state = CASE WHEN t.is_unfinished THEN 'cancelled' ELSE o.state END,
    cause = CASE WHEN t.is_unfinished THEN 'erased' ELSE o.cause END,
    changed_at = CASE WHEN t.is_unfinished THEN $2::timestamptz ELSE o.changed_at END,
    paid_at = CASE WHEN NOT t.is_unfinished THEN o.paid_at END,
    environment = CASE WHEN NOT t.is_unfinished THEN o.environment END,
    transaction_id = CASE WHEN NOT t.is_unfinished THEN o.transaction_id END,
    purchase_id = CASE WHEN NOT t.is_unfinished THEN o.purchase_id END,
    subscription_id = CASE WHEN NOT t.is_unfinished THEN o.subscription_id END,
    period_id = CASE WHEN NOT t.is_unfinished THEN o.period_id END
FROM theirs t WHERE o.order_id = t.order_id

-- name: erase_receipts
-- Erase: empties receipts ($1) at $2 beyond recognition; the rows stay for the records that refer to them.
WITH unasked AS (
    DELETE FROM ledger.poll_schedule s WHERE s.receipt_id = ANY($1::bigint[])
), unrefused AS (
    DELETE FROM ledger.refusal f WHERE f.receipt_id = ANY($1::bigint[])
), silenced AS (
    UPDATE ledger.observation o SET body = NULL, meaning = '' WHERE o.receipt_id = ANY($1::bigint[])
)
UPDATE ledger.receipt r
SET data = '', latest_receipt = NULL, digest = sha256(gen_random_uuid()::text::bytea), meaning = NULL, reason = NULL,
    transaction_id = NULL, history_revision = NULL, erased_at = $2::timestamptz
WHERE r.receipt_id = ANY($1::bigint[])

-- name: read_ownerships
-- Customer: returns present and past ownerships of customers ($1), as known now, newest first, at most $2.
SELECT COALESCE(s.environment, p.environment)::text AS environment,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id,
       s.subscription_id IS NOT NULL AS is_subscription, COALESCE(p.product_id, span.product_id) AS product_id,
       CASE WHEN p.purchase_id IS NOT NULL THEN CASE WHEN p.revoked_at <= now() THEN 'revoked' ELSE 'active' END
            WHEN ledger.is_in_outage_allowance(span.valid, span.allowed_until, now()) THEN 'awaiting_renewal' ELSE span.state::text END AS state,
       COALESCE(s.expires_at, p.revoked_at) AS ends_at, o.cause, lower(o.valid) AS since, upper(o.valid) AS until,
       (SELECT c.name FROM ledger.ownership n JOIN ledger.customer c USING (customer_id)
        WHERE (n.subscription_id = o.subscription_id OR n.purchase_id = o.purchase_id)
          AND upper_inf(n.known) AND lower(n.valid) = upper(o.valid)) AS went_to
FROM ledger.ownership o
LEFT JOIN ledger.subscription s ON s.subscription_id = o.subscription_id
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
LEFT JOIN ledger.purchase p ON p.purchase_id = o.purchase_id
LEFT JOIN ledger.subscription_span span
    ON span.subscription_id = s.subscription_id AND upper_inf(span.known)
   AND span.valid @> GREATEST(now(), ledger.as_of(s, poller))
WHERE o.customer_id = ANY($1::bigint[]) AND upper_inf(o.known)
ORDER BY upper(o.valid) DESC NULLS FIRST, o.ownership_id DESC LIMIT $2::int
