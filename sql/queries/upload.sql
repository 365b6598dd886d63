-- Uploads and imports: what is known of a receipt, and how it is stored.

-- name: insert_customers
-- Inserts customers that are not known yet ($1 apps, $2 names; each once, in order of app and name), and returns those
-- it inserted. Intake, manual grants, assignments and merges run it.
INSERT INTO ledger.customer (app_id, name)
SELECT unnest($1::int[]), unnest($2::text[])
ON CONFLICT DO NOTHING
RETURNING customer_id, app_id, name

-- name: lock_uploader
-- Intake: makes the new receipts of customer $1 wait for each other until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtext('ledger.new_receipts'), ($1::bigint % 2147483647)::int)

-- name: count_uploaded
-- Intake: counts the new receipts of the last hour that count against the hourly limit of customer $1, or of order $2 and its
-- customer: those that the customer uploaded, and those that were sent for orders of theirs; also the seconds until the oldest
-- is an hour old. The first new receipt of each order does not count.
WITH buyer AS MATERIALIZED (
    SELECT $1::bigint AS customer_id WHERE $1::bigint IS NOT NULL
    UNION ALL
    SELECT COALESCE(c.merged_into, c.customer_id)
    FROM ledger.purchase_order o JOIN ledger.customer c USING (customer_id)
    WHERE o.order_id = $2::text::uuid
), fresh AS (
    SELECT r.receipt_id, r.received_at
    FROM buyer b
    JOIN ledger.upload u ON u.customer_id = b.customer_id AND NOT u.imported
    JOIN ledger.receipt r USING (receipt_id)
    WHERE r.received_at > clock_timestamp() - interval '1 hour'
    UNION
    SELECT r.receipt_id, r.received_at
    FROM buyer b
    CROSS JOIN LATERAL (
        SELECT b.customer_id
        UNION ALL
        SELECT c.customer_id FROM ledger.customer c WHERE c.merged_into = b.customer_id OFFSET 0) c
    JOIN ledger.purchase_order o ON o.customer_id = c.customer_id AND o.created_at > now() - interval '180 days'
    JOIN ledger.order_receipt x USING (order_id)
    JOIN ledger.receipt r USING (receipt_id)
    WHERE x.is_new AND x.sent_at > clock_timestamp() - interval '1 hour'
      AND r.received_at > clock_timestamp() - interval '1 hour'
)
SELECT count(*) AS receipts,
       GREATEST(1, ceil(extract(epoch FROM min(n.received_at) + interval '1 hour' - clock_timestamp())))::bigint
           AS seconds_left
FROM fresh n
WHERE NOT EXISTS (
    SELECT FROM ledger.order_receipt x
    WHERE x.receipt_id = n.receipt_id AND x.is_new AND NOT EXISTS (
        SELECT FROM ledger.order_receipt e
        WHERE e.order_id = x.order_id AND e.is_new AND e.receipt_id < x.receipt_id))

-- name: insert_receipts
-- Intake: inserts receipts that are not known yet ($1 apps, $2 digests, $3 bytes, $4 forms, $5 transaction ids; each once,
-- in order of app and digest, so that writers do not deadlock), and returns those it inserted.
INSERT INTO ledger.receipt (app_id, digest, data, form, transaction_id)
SELECT unnest($1::int[]), unnest($2::bytea[]), unnest($3::bytea[]), unnest($4::text[])::ledger.receipt_form,
       unnest($5::text[])
ON CONFLICT DO NOTHING
RETURNING receipt_id, app_id, digest

-- name: find_digests
-- Intake: returns the keys of receipts that were already known ($1 apps, $2 digests).
SELECT r.receipt_id, r.app_id, r.digest
FROM unnest($1::int[], $2::bytea[]) AS n(app_id, digest)
JOIN ledger.receipt r ON r.app_id = n.app_id AND r.digest = n.digest

-- name: keep_receipts
-- Intake: locks known receipts ($1), by receipt id, and returns those that are not erased; no erasure removes them before
-- the end of the transaction, and one that waits sees who uploaded them. It runs after lock_schedules.
SELECT r.receipt_id FROM ledger.receipt r
WHERE r.receipt_id = ANY($1::bigint[]) AND r.erased_at IS NULL
ORDER BY r.receipt_id
FOR NO KEY UPDATE

-- name: store_uploads
-- Intake: stores uploads ($1 receipts, $2 customers, $3 imported, $4 storefronts, $5 prices, $6 currencies, $7 expiries
-- as far as they are known, $8 whether the receipt says that it is of the sandbox).
-- A device that sends a receipt for an order names no customer; then nothing but the receipt is stored here. A notification names
-- none either, but a bare transaction id; then nothing is stored here (want_receipts). An upload
-- makes its receipt due: at once when imported, in the order of ledger.import_priority, else in five seconds, because
-- the uploading process asks Apple right away. An import of a known upload does not; if it says a storefront or price
-- that this upload never said, that is kept, and holds from now on. A receipt in quarantine stays there, because it is
-- asked about alone.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS at
), given AS MATERIALIZED (
    SELECT n.receipt_id, n.customer_id, bool_and(n.imported) AS imported,
           (array_agg(n.storefront ORDER BY n.place DESC) FILTER (WHERE n.storefront IS NOT NULL))[1] AS storefront,
           (array_agg(n.price_milliunits ORDER BY n.place DESC) FILTER (WHERE n.currency IS NOT NULL))[1]
               AS price_milliunits,
           (array_agg(n.currency ORDER BY n.place DESC) FILTER (WHERE n.currency IS NOT NULL))[1] AS currency,
           max(n.expires_at) AS expires_at, bool_or(n.is_sandbox) AS is_sandbox, max(n.place) AS place
    FROM unnest($1::bigint[], $2::bigint[], $3::boolean[], $4::text[], $5::bigint[], $6::text[], $7::timestamptz[], $8::boolean[])
        WITH ORDINALITY
        AS n(receipt_id, customer_id, imported, storefront, price_milliunits, currency, expires_at, is_sandbox, place)
    GROUP BY n.receipt_id, n.customer_id
), uploaded AS (
    INSERT INTO ledger.upload AS u
        (receipt_id, customer_id, uploaded_at, imported, storefront, price_milliunits, currency)
    SELECT g.receipt_id, g.customer_id, clock.at + g.place * interval '1 microsecond', g.imported, g.storefront,
           g.price_milliunits, g.currency
    FROM given g CROSS JOIN clock
    WHERE g.customer_id IS NOT NULL
    ORDER BY g.receipt_id, g.customer_id
    ON CONFLICT (receipt_id, customer_id) DO UPDATE
    SET settled = u.settled AND EXCLUDED.imported, imported = u.imported AND EXCLUDED.imported,
        uploaded_at = CASE WHEN EXCLUDED.imported THEN u.uploaded_at ELSE EXCLUDED.uploaded_at END,
        storefront = COALESCE(EXCLUDED.storefront, u.storefront),
        price_milliunits = COALESCE(EXCLUDED.price_milliunits, u.price_milliunits),
        currency = COALESCE(EXCLUDED.currency, u.currency)
    WHERE NOT EXCLUDED.imported
       OR (num_nonnulls(EXCLUDED.storefront, EXCLUDED.currency) > 0 AND NOT EXISTS (
           SELECT FROM ledger.stated_price w
           WHERE w.receipt_id = u.receipt_id AND w.customer_id = u.customer_id
             AND COALESCE(w.storefront = EXCLUDED.storefront, EXCLUDED.storefront IS NULL)
             AND COALESCE((w.price_milliunits, w.currency) = (EXCLUDED.price_milliunits, EXCLUDED.currency),
                          EXCLUDED.currency IS NULL)))
    RETURNING u.receipt_id, u.imported, u.uploaded_at
), brought AS (
    SELECT u.receipt_id, bool_and(u.imported) AS imported, bool_or(u.imported) AS is_due_now
    FROM (
        SELECT u.receipt_id, u.imported FROM uploaded u CROSS JOIN clock WHERE u.uploaded_at >= clock.at
        UNION ALL
        SELECT g.receipt_id, false FROM given g JOIN ledger.receipt r USING (receipt_id)
        WHERE g.customer_id IS NULL AND r.form <> 'transaction_id') u
    GROUP BY u.receipt_id
), due AS (
    SELECT r.receipt_id, r.app_id, r.environment,
           CASE WHEN r.verified_at IS NOT NULL THEN 'expiring'::ledger.lane WHEN b.imported THEN 'import' ELSE 'new' END AS lane,
           clock.at + CASE WHEN b.is_due_now THEN interval '0' ELSE interval '5 s' END AS at
    FROM brought b JOIN ledger.receipt r USING (receipt_id) CROSS JOIN clock
)
INSERT INTO ledger.poll_schedule AS s (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
SELECT d.receipt_id, d.app_id, d.lane,
       CASE WHEN d.lane = 'import' THEN ledger.import_priority(e.expires_at, clock.at) ELSE d.at END, d.at,
       COALESCE(d.environment = 'Sandbox', e.is_sandbox)
FROM due d CROSS JOIN clock
JOIN (SELECT receipt_id, max(expires_at) AS expires_at, bool_or(is_sandbox) AS is_sandbox FROM given GROUP BY receipt_id) e
    USING (receipt_id)
ORDER BY d.receipt_id
ON CONFLICT (receipt_id) DO UPDATE
SET due_at = CASE WHEN s.leased_by IS NOT NULL THEN s.due_at
                  WHEN s.lane = 'import' AND EXCLUDED.lane < 'import' THEN EXCLUDED.due_at
                  ELSE LEAST(s.due_at, EXCLUDED.due_at) END,
    scheduled_for = CASE WHEN s.leased_by IS NULL THEN LEAST(s.scheduled_for, EXCLUDED.scheduled_for) ELSE s.scheduled_for END,
    lane = CASE WHEN s.leased_by IS NULL AND s.lane <> 'quarantine' THEN LEAST(s.lane, EXCLUDED.lane) ELSE s.lane END,
    is_sandbox = EXCLUDED.is_sandbox, fingerprint = NULL

-- name: store_provisionals
-- Intake: stores the provisional access that lines promise until Apple's answer ($1 receipts, $2 customers, $3
-- products, $4 ends, $5 environments), at most 90 days from the first promise. Stores nothing for a receipt that Apple
-- vouched for, and no repetition of an earlier promise.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS at
), given AS (
    SELECT DISTINCT ON (n.receipt_id, n.customer_id, n.product_id) n.*
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::timestamptz[], $5::text[]) WITH ORDINALITY
        AS n(receipt_id, customer_id, product_id, until, environment, place)
    ORDER BY n.receipt_id, n.customer_id, n.product_id, n.place DESC
), bounded AS (
    SELECT g.customer_id, g.receipt_id, g.product_id, clock.at AS stated_at, b.since,
           GREATEST(b.since, LEAST(g.until, b.since + interval '90 days')) AS until, g.environment, earlier.until AS stated
    FROM given g CROSS JOIN clock
    JOIN ledger.receipt r ON r.receipt_id = g.receipt_id AND r.verified_at IS NULL
    LEFT JOIN LATERAL (
        SELECT p.since, p.until FROM ledger.provisional p
        WHERE p.customer_id = g.customer_id AND p.receipt_id = g.receipt_id AND p.product_id = g.product_id
        ORDER BY p.stated_at DESC LIMIT 1) earlier ON true
    CROSS JOIN LATERAL (SELECT COALESCE(earlier.since, clock.at) AS since) b
)
INSERT INTO ledger.provisional (customer_id, receipt_id, product_id, stated_at, since, until, environment)
SELECT customer_id, receipt_id, product_id, stated_at, since, until, environment::ledger.environment
FROM bounded WHERE until <> COALESCE(stated, since)
ON CONFLICT DO NOTHING
RETURNING customer_id

-- name: audit_uploads
-- Records who stored receipts: API key $1 or operating-system user $2, action $3; apps $4, customers $5, receipts $6.
INSERT INTO ledger.audit (key_id, os_user, action, app_id, customer_id, receipt_id)
SELECT $1::int, $2::text, $3::text, c.app_id, c.customer_id, n.receipt_id
FROM unnest($4::int[], $5::text[], $6::bigint[]) WITH ORDINALITY AS n(app_id, name, receipt_id, place)
JOIN ledger.customer c USING (app_id, name)
ORDER BY n.place

-- name: read_lease
-- Upload: returns the seconds until receipt $1 may be asked about: until it may be taken from a process that leased it and
-- shows no sign of life, or until the next trial where Apple refuses the app's secret. With $2 its back-off counts too, of
-- which an hour at most. No row where nothing is in the way.
SELECT CEIL(GREATEST(1, EXTRACT(epoch FROM wait.until - now())))::bigint AS seconds
FROM ledger.poll_schedule s
LEFT JOIN ledger.worker w ON w.worker_id = s.leased_by
LEFT JOIN ledger.secret_trial t ON t.app_id = s.app_id AND (t.environment = 'Sandbox') = s.is_sandbox
    AND ledger.secret_pause(s.app_id, s.is_sandbox) IS NOT NULL
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN s.leased_by IS NOT NULL AND s.due_at > now() AND COALESCE(ledger.gone_at(w) <= now() + interval '10 seconds', true)
        THEN LEAST(s.due_at, CASE WHEN s.crashes = 0 THEN ledger.gone_at(w) END)
        WHEN s.leased_by IS NULL
        THEN GREATEST(CASE WHEN t.app_id IS NOT NULL THEN GREATEST(t.try_at, now() + interval '5 s') END,
                      CASE WHEN $2::boolean AND s.backs_off THEN LEAST(s.due_at, now() + interval '1 hour') END)
    END AS until) wait
WHERE s.receipt_id = $1::bigint AND wait.until IS NOT NULL

-- name: read_contents
-- Upload: returns the subscriptions in receipt $1 and their owners, in natural-key order.
SELECT s.subscription_id, s.app_id, s.environment::text AS environment, s.original_transaction_id, s.polled_by, s.version,
       ledger.as_of(s, poller) AS as_of, ledger.checked_at(s, poller) AS checked_at, s.recorded_at,
       ledger.next_check_at(s, poller) AS next_check_at, s.renewal, ledger.renewal_as_of(s, poller) AS renewal_as_of,
       s.renewal_path, s.suspected,
       s.leeway_ms, c.name AS owner
FROM ledger.receipt_subscription l
JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
LEFT JOIN ledger.ownership o ON o.subscription_id = s.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid)
LEFT JOIN ledger.customer c USING (customer_id)
WHERE l.receipt_id = $1::bigint
ORDER BY s.app_id, s.environment, s.original_transaction_id COLLATE "C"

-- name: read_last_check
-- Upload: returns the result of the last check of receipt $1, the settlement that wrote it, and whether it covered the
-- latest upload of customer $2, for order $3; either may be null.
SELECT r.outcome::text AS outcome, r.reason, r.settled_token, r.form::text AS form, r.vouched,
       CASE WHEN s.leased_by IS NULL THEN GREATEST(s.due_at, s.scheduled_for) ELSE s.scheduled_for END AS next_check_at,
       ($2::text IS NULL OR EXISTS (
            SELECT FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
            WHERE u.receipt_id = r.receipt_id AND c.name = $2::text AND u.settled))
       AND ($3::text IS NULL OR EXISTS (
            SELECT FROM ledger.order_receipt x
            WHERE x.receipt_id = r.receipt_id AND x.order_id = $3::text::uuid AND x.settled)) AS claims_are_resolved
FROM ledger.receipt r LEFT JOIN ledger.poll_schedule s USING (receipt_id)
WHERE r.receipt_id = $1::bigint

-- name: read_receipt_purchases
-- Upload: returns what receipt $1 holds: each one-time purchase, and each period of its subscriptions, with every
-- transaction id, whether customer $2, by any name, owns it, whether its owner only points at it, which order it pays, which
-- one its account token names, whether it is another's: its token names another customer, or another customer paid it
-- (is_shared); and whether another customer was given it.
WITH buyer AS MATERIALIZED (
    SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id
    FROM ledger.receipt r JOIN ledger.customer c ON c.app_id = r.app_id AND c.name = $2::text
    WHERE r.receipt_id = $1::bigint
), item AS (
    SELECT p.app_id, p.purchase_id, NULL::bigint AS subscription_id, p.environment::text AS environment,
           p.original_transaction_id, p.transaction_id, p.transaction_ids, p.product_id, p.quantity, p.purchased_at,
           p.revoked_at IS NOT NULL AS is_revoked, p.revoked_at,
           COALESCE(d.kind = 'non_consumable', false) AS is_restorable,
           COALESCE(o.customer_id = (SELECT b.customer_id FROM buyer b), false) AS is_owner,
           o.cause IS NOT DISTINCT FROM 'pointer' AS is_pointed,
           ledger.given_to(p.purchase_id, NULL, NULL) AS given_to, false AS is_renewal,
           (SELECT r.order_id::text FROM ledger.purchase_order r WHERE r.purchase_id = p.purchase_id) AS pays,
           lower(p.app_account_token) AS token,
           ledger.is_shared(p.facts #>> '{ownership,word}') AS is_shared
    FROM ledger.receipt_purchase l
    JOIN ledger.purchase p USING (purchase_id)
    LEFT JOIN ledger.product d ON d.app_id = p.app_id AND d.product_id = p.product_id
    LEFT JOIN ledger.ownership o ON o.purchase_id = p.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid)
    WHERE l.receipt_id = $1::bigint AND p.version > 0
    UNION ALL
    SELECT s.app_id, NULL, s.subscription_id, s.environment::text, s.original_transaction_id, a.ids[1], a.ids,
           e.product_id, e.quantity, e.purchased_at, e.cancelled_at IS NOT NULL AND NOT e.is_upgraded, e.cancelled_at,
           true, COALESCE(o.customer_id = (SELECT b.customer_id FROM buyer b), false), o.cause IS NOT DISTINCT FROM 'pointer',
           ledger.given_to(NULL, e.subscription_id, e.period_id),
           e.is_renewal,
           (SELECT r.order_id::text FROM ledger.purchase_order r
            WHERE r.subscription_id = e.subscription_id AND r.period_id = e.period_id), lower(e.app_account_token),
           ledger.is_shared(e.ownership)
    FROM ledger.receipt_subscription l
    JOIN ledger.subscription s USING (subscription_id)
    JOIN ledger.period e USING (subscription_id)
    CROSS JOIN LATERAL (
        SELECT array_agg(a.transaction_id ORDER BY a.transaction_id COLLATE "C") AS ids
        FROM ledger.transaction_alias a WHERE a.period_id = e.period_id) a
    LEFT JOIN ledger.ownership o ON o.subscription_id = s.subscription_id AND upper_inf(o.known) AND upper_inf(o.valid)
    WHERE l.receipt_id = $1::bigint AND s.version > 0 AND a.ids IS NOT NULL
)
SELECT i.*, COALESCE(i.given_to <> (SELECT b.customer_id FROM buyer b), false) AS is_given_to_another,
       (SELECT n.order_id::text FROM ledger.purchase_order n
        WHERE n.app_account_token = ledger.account_token(i.token) AND n.app_id = i.app_id) AS token_order,
       i.is_shared OR EXISTS (
           SELECT FROM ledger.customer c
           WHERE c.app_id = i.app_id AND c.name IN (i.token, upper(i.token))
             AND COALESCE(c.merged_into, c.customer_id) <> (SELECT b.customer_id FROM buyer b)) AS is_of_another
FROM item i
ORDER BY i.purchased_at, i.original_transaction_id, i.transaction_id

-- name: read_receipt_deliveries
-- Upload: returns what the purchases ($1) and subscriptions ($2) in a receipt gave customer $4 of the app of receipt
-- $3, by any name, and what they are still to give; the newest $5.
SELECT d.delivery_id, d.position, head.name AS customer, d.environment::text AS environment, d.product_id,
       d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id, d.transaction_id,
       d.original_transaction_id, d.state::text AS state, d.created_at, d.settled_at, d.settled_by, d.skip_reason
FROM ledger.delivery_now d
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE (d.purchase_id = ANY($1::bigint[]) OR d.subscription_id = ANY($2::bigint[]))
  AND COALESCE(c.merged_into, c.customer_id) = (
      SELECT COALESCE(n.merged_into, n.customer_id)
      FROM ledger.receipt r JOIN ledger.customer n USING (app_id)
      WHERE r.receipt_id = $3::bigint AND n.name = $4::text)
ORDER BY d.delivery_id DESC LIMIT $5::int

-- name: open_import
-- Begins or continues the import of a file: $1 name, $2 bytes, $3 digest of its edges; $4: from the start again.
INSERT INTO ledger.import AS i (file_name, file_bytes, edges) VALUES ($1::text, $2::bigint, $3::bytea)
ON CONFLICT (file_name, file_bytes, edges) DO UPDATE
SET read_lines = CASE WHEN $4::boolean THEN '{}' ELSE i.read_lines END,
    read_bytes = CASE WHEN $4::boolean THEN '{}' ELSE i.read_bytes END,
    bad_lines = CASE WHEN $4::boolean THEN '{}' ELSE i.bad_lines END
RETURNING i.import_id, i.started_at,
    (SELECT upper(r) FROM unnest(i.read_lines) r WHERE r @> 1::bigint AND isempty(i.bad_lines)) AS next_line,
    (SELECT upper(r) FROM unnest(i.read_bytes) r WHERE r @> 0::bigint AND isempty(i.bad_lines)) AS next_byte,
    ARRAY(SELECT lower(r) FROM unnest(i.read_lines - i.bad_lines) r) AS starts,
    ARRAY(SELECT upper(r) FROM unnest(i.read_lines - i.bad_lines) r) AS ends

-- name: mark_import
-- Marks a part of import $1 as read, in the transaction that stores it: lines $2 to $3 and bytes $4 to $5, both ends
-- excluded, with the bad lines $6. Each update writes all pieces of bad lines, so a part that would make more than a
-- thousand is not marked, and is read again as a whole.
UPDATE ledger.import i
SET read_lines = i.read_lines + p.lines,
    read_bytes = i.read_bytes + int8multirange(int8range($4::bigint, $5::bigint)),
    bad_lines = i.bad_lines - p.lines + p.bad
FROM (
    SELECT int8multirange(int8range($2::bigint, $3::bigint)) AS lines,
           COALESCE(range_agg(int8range(n, n + 1)), '{}') AS bad FROM unnest($6::bigint[]) n) p
WHERE i.import_id = $1::bigint AND (SELECT count(*) FROM unnest(i.bad_lines - p.lines + p.bad)) <= 1000

-- name: waiting
-- Returns per app: receipts that wait for Apple's first answer, calls a second (0: unlimited), and whether a worker is
-- alive.
SELECT a.bundle_id, b.rate,
       (SELECT count(*) FROM ledger.poll_schedule s WHERE s.app_id = a.app_id AND s.lane IN ('new', 'import')) AS receipts,
       EXISTS (SELECT FROM ledger.worker w
               WHERE w.stopped_at IS NULL AND w.heartbeat_at > now() - interval '2 minutes') AS has_worker
FROM ledger.app a JOIN ledger.app_budget b USING (app_id)
ORDER BY a.bundle_id COLLATE "C"

-- name: count_refused_bundles
-- Counts receipts that were refused because they name another app than $1: the bundle ids $2, each so often $3. Of an app
-- $4 ids are kept: where there is no room, a new one takes the place of the rarest and counts on from it.
WITH named AS MATERIALIZED (
    SELECT n.bundle_id, n.receipts
    FROM unnest($2::text[], $3::bigint[]) AS n(bundle_id, receipts) ORDER BY n.bundle_id
), known AS (
    UPDATE ledger.refused_bundle b SET receipts = b.receipts + n.receipts, last_at = now()
    FROM named n WHERE b.app_id = $1::int AND b.bundle_id = n.bundle_id
    RETURNING b.bundle_id
), new AS MATERIALIZED (
    SELECT n.*, row_number() OVER (ORDER BY n.receipts DESC, n.bundle_id) AS place,
           $4::int - (SELECT count(*) FROM ledger.refused_bundle b WHERE b.app_id = $1::int) AS room
    FROM named n WHERE n.bundle_id NOT IN (SELECT k.bundle_id FROM known k)
), rare AS MATERIALIZED (
    SELECT b.bundle_id, row_number() OVER (ORDER BY b.receipts, b.last_at) AS place
    FROM ledger.refused_bundle b
    WHERE b.app_id = $1::int AND b.bundle_id NOT IN (SELECT k.bundle_id FROM known k)
), replaced AS (
    UPDATE ledger.refused_bundle b
    SET bundle_id = n.bundle_id, receipts = b.receipts + n.receipts, last_at = now()
    FROM new n JOIN rare r ON r.place = n.place - GREATEST(0, n.room)
    WHERE n.place > n.room AND b.app_id = $1::int AND b.bundle_id = r.bundle_id
)
INSERT INTO ledger.refused_bundle AS b (app_id, bundle_id, receipts)
SELECT $1::int, n.bundle_id, n.receipts FROM new n WHERE n.place <= n.room
ON CONFLICT (app_id, bundle_id) DO UPDATE SET receipts = b.receipts + EXCLUDED.receipts, last_at = now()
