-- Notifications and signed texts: the app that they are for, and how they are kept until a check uses them.

-- name: count_unread_claims
-- Counts claims that are not read, of app $1: names $2, whether known and unreadable $3, in how many texts $4, an example
-- $5, the subscription or purchase that it is about $6 and the account token in it $8. Of an app $7 names are kept, the
-- first ones. A text with the account token of an erased customer is no example.
WITH stated AS MATERIALIZED (
    SELECT s.name, s.is_unreadable, s.texts, CASE WHEN NOT t.is_erased THEN s.example END AS example,
           CASE WHEN NOT t.is_erased THEN s.original_transaction_id END AS original_transaction_id
    FROM unnest($2::text[], $3::boolean[], $4::bigint[], $5::text[], $6::text[], $8::text[])
        AS s(name, is_unreadable, texts, example, original_transaction_id, account_token)
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT FROM ledger.erased_token e
            WHERE e.app_id = $1::int AND e.digest = sha256(convert_to(s.account_token, 'UTF8'))) AS is_erased) t
), seen AS MATERIALIZED (
    SELECT s.*, row_number() OVER (PARTITION BY u.name IS NULL ORDER BY s.name) AS place, u.name IS NOT NULL AS is_known
    FROM stated s
    LEFT JOIN ledger.unread_claim u ON u.app_id = $1::int AND u.name = s.name
), room AS MATERIALIZED (
    SELECT $7::int - count(*) AS names FROM ledger.unread_claim u WHERE u.app_id = $1::int
)
INSERT INTO ledger.unread_claim AS u (app_id, name, is_unreadable, texts, example, original_transaction_id)
SELECT $1::int, s.name, s.is_unreadable, s.texts, s.example, s.original_transaction_id
FROM seen s, room WHERE s.is_known OR s.place <= room.names
ORDER BY s.name
ON CONFLICT (app_id, name) DO UPDATE SET
    texts = u.texts + EXCLUDED.texts, last_seen_at = now(), is_unreadable = EXCLUDED.is_unreadable,
    example = COALESCE(u.example, EXCLUDED.example),
    original_transaction_id =
        CASE WHEN u.example IS NULL THEN EXCLUDED.original_transaction_id ELSE u.original_transaction_id END

-- name: read_unread_claims
-- Returns the claims that are not read, at most $1, those of app $2 only where it is not null, and of this name $3.
SELECT a.bundle_id, u.name, u.is_unreadable, u.texts, u.first_seen_at, u.last_seen_at,
       CASE WHEN u.name = $3::text THEN u.example END AS example
FROM ledger.unread_claim u JOIN ledger.app a USING (app_id)
WHERE ($2::int IS NULL OR u.app_id = $2::int) AND ($3::text IS NULL OR u.name = $3::text)
ORDER BY a.bundle_id, u.texts DESC, u.name
LIMIT $1::int

-- name: forget_unread_claims
-- Forgets claims that no text stated for $1 days: Apple stopped, or this version reads them.
DELETE FROM ledger.unread_claim u WHERE u.last_seen_at < now() - make_interval(days => $1::int)

-- name: end_questions
-- Polling: no receipt is asked any more about subscriptions ($1) and purchases ($2), nor by the transaction ids of receipts ($3):
-- no answer will show what notifications about them state. What another receipt polls is asked about on.
WITH subject AS (
    SELECT s.app_id, s.environment, s.original_transaction_id FROM ledger.subscription s
    WHERE s.subscription_id = ANY($1::bigint[])
    UNION
    SELECT p.app_id, p.environment, p.original_transaction_id FROM ledger.purchase p WHERE p.purchase_id = ANY($2::bigint[])
)
UPDATE ledger.notification n SET effect = 'unshown'
WHERE n.effect = 'asked'
  AND ((n.app_id, n.environment, n.original_transaction_id) IN (SELECT * FROM subject)
    OR (n.app_id, COALESCE(n.transaction_id, n.original_transaction_id)) IN (
        SELECT r.app_id, r.transaction_id FROM ledger.receipt r
        WHERE r.receipt_id = ANY($3::bigint[]) AND r.form = 'transaction_id')
       -- Another receipt goes on with the follow-ups.
       AND NOT EXISTS (
           SELECT FROM ledger.subscription s
           WHERE s.app_id = n.app_id AND s.environment = n.environment
             AND s.original_transaction_id = n.original_transaction_id AND s.polled_by IS NOT NULL)
       AND NOT EXISTS (
           SELECT FROM ledger.purchase p JOIN ledger.poll_schedule q ON q.receipt_id = p.polled_by
           WHERE p.app_id = n.app_id AND p.environment = n.environment
             AND p.original_transaction_id = n.original_transaction_id AND q.follow_ups > 0))
  AND NOT EXISTS (
      SELECT FROM ledger.server_question q
      WHERE q.notification_id = n.notification_id AND q.receipt_id <> ALL($3::bigint[]))

-- name: store_verified_notification
-- Stores a verified notification of app $1 ($2 kind, $3 subkind, $4 Apple's id, $5 environment, $6 original transaction
-- id, $7 when it was signed, $8 its texts, $9 whether it holds facts, $10 transaction id, $11 account token), and has the
-- receipt that polls its subject asked about $12 seconds from now, or $13 seconds after its last answer or after the check under way:
-- with follow-ups, until an answer shows what it states. A receipt that had retired is scheduled again. A renewal waits for the
-- planned check if the subscription is active, is known to run for another hour, and either the period that it paid ($14 product,
-- $15 line item, $16 start, $17 end) is known as it states it, or it is the one that is expected next: of the running or the
-- planned product, from the known end on. A repetition does nothing; one that was stored unverified becomes verified. Texts with the account token of an erased customer are not stored, and what they are about is not taken up.
WITH clock AS MATERIALIZED (
    SELECT now() AS at
), news AS MATERIALIZED (
    SELECT FROM clock WHERE $9::boolean AND NOT EXISTS (
        SELECT FROM ledger.notification n
        WHERE n.app_id = $1::int AND n.apple_id = $4::text AND n.signed_at IS NOT NULL)
), token AS MATERIALIZED (
    SELECT EXISTS (
            SELECT FROM ledger.erased_token e
            WHERE e.app_id = $1::int AND e.digest = sha256(convert_to($11::text, 'UTF8')))
       AND NOT EXISTS (
            SELECT FROM ledger.customer c WHERE c.app_id = $1::int AND c.name IN ($11::text, upper($11::text))) AS is_erased
), subject AS MATERIALIZED (
    SELECT s.polled_by AS receipt_id,
           $2::text = 'DID_RENEW' AND s.expires_at > clock.at + interval '1 hour' AND EXISTS (
               SELECT FROM ledger.subscription_span n
               WHERE n.subscription_id = s.subscription_id AND upper_inf(n.known) AND n.valid @> clock.at
                 AND n.state = 'active'
                 AND (s.renewal_expected AND $14::text IN (n.product_id, s.renews_to_product_id)
                      AND $16::timestamptz >= s.expires_at AND $17::timestamptz > s.expires_at
                   OR EXISTS (
                      SELECT FROM ledger.period p
                      WHERE p.subscription_id = s.subscription_id AND p.product_id = $14::text
                        AND p.expires_at >= $17::timestamptz AND p.cancelled_at IS NULL AND NOT p.is_upgraded
                        AND (p.web_order_line_item_id = $15::text OR EXISTS (
                            SELECT FROM ledger.transaction_alias t
                            WHERE t.period_id = p.period_id AND t.transaction_id = $10::text))))) AS waits
    FROM news, clock, ledger.subscription s
    WHERE s.app_id = $1::int AND s.environment = $5::text::ledger.environment
      AND s.original_transaction_id = $6::text AND s.polled_by IS NOT NULL
    UNION ALL
    SELECT p.polled_by, false
    FROM news, ledger.purchase p
    WHERE p.app_id = $1::int AND p.environment = $5::text::ledger.environment
      AND p.original_transaction_id = $6::text AND p.polled_by IS NOT NULL
), wanted AS MATERIALIZED (
    SELECT w.receipt_id, GREATEST(
               clock.at + make_interval(secs => $12::float8),
               CASE WHEN s.leased_by IS NOT NULL AND s.due_at > clock.at THEN clock.at
                    ELSE GREATEST(r.asked_at, s.confirmed_at) END + make_interval(secs => $13::float8)) AS at
    FROM (SELECT receipt_id FROM subject WHERE NOT waits GROUP BY receipt_id) w
    JOIN ledger.receipt r USING (receipt_id)
    LEFT JOIN ledger.poll_schedule s USING (receipt_id)
    CROSS JOIN clock
), locked AS MATERIALIZED (
    SELECT s.receipt_id, s.lane = 'quarantine' OR (s.leased_by IS NOT NULL AND s.due_at > clock.at) AS keeps_pace
    FROM ledger.poll_schedule s, clock
    WHERE s.receipt_id IN (SELECT receipt_id FROM wanted)
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s
), pulled AS (
    UPDATE ledger.poll_schedule s
    SET want_at = CASE WHEN l.keeps_pace THEN LEAST(s.want_at, w.at) ELSE s.want_at END,
        due_at = CASE WHEN l.keeps_pace THEN s.due_at ELSE LEAST(s.due_at, w.at) END,
        scheduled_for = CASE WHEN l.keeps_pace THEN s.scheduled_for ELSE LEAST(s.scheduled_for, w.at) END,
        lane = CASE WHEN l.keeps_pace THEN s.lane ELSE ledger.pulled_lane(s) END,
        follow_ups = 4, fingerprint = NULL
    FROM locked l JOIN wanted w USING (receipt_id) WHERE s.receipt_id = l.receipt_id
), forgotten AS (
    -- The planned check is read in full, so that details ride along.
    UPDATE ledger.poll_schedule s SET fingerprint = NULL
    FROM subject x WHERE x.waits AND s.receipt_id = x.receipt_id
), put_back AS (
    INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, follow_ups, is_sandbox)
    SELECT w.receipt_id, $1::int, 'retry', w.at, w.at, 4, $5::text IS NOT DISTINCT FROM 'Sandbox'
    FROM wanted w WHERE w.receipt_id NOT IN (SELECT receipt_id FROM locked)
    ON CONFLICT (receipt_id) DO UPDATE SET follow_ups = 4, fingerprint = NULL
)
INSERT INTO ledger.notification AS n (
    app_id, received_at, version, kind, subkind, apple_id, environment, original_transaction_id, signed_at, effect,
    check_at, texts, body, transaction_id, account_token)
SELECT $1::int, clock.at, 2, $2::text, $3::text, $4::text, $5::text::ledger.environment, $6::text, $7::timestamptz,
       CASE WHEN NOT $9::boolean THEN 'no_facts'
            WHEN EXISTS (SELECT FROM wanted) THEN 'asked'
            WHEN EXISTS (SELECT FROM subject) THEN 'planned'
            WHEN token.is_erased THEN 'no_facts'
            ELSE 'unpolled' END,
       (SELECT min(w.at) FROM wanted w), CASE WHEN NOT token.is_erased THEN $8::bytea END,
       CASE WHEN token.is_erased THEN 'null'::json END, $10::text, CASE WHEN NOT token.is_erased THEN $11::text END
FROM clock CROSS JOIN token
ON CONFLICT (app_id, apple_id) DO UPDATE SET
    kind = EXCLUDED.kind, subkind = EXCLUDED.subkind, environment = EXCLUDED.environment,
    original_transaction_id = EXCLUDED.original_transaction_id, signed_at = EXCLUDED.signed_at, effect = EXCLUDED.effect,
    check_at = EXCLUDED.check_at, texts = EXCLUDED.texts, transaction_id = EXCLUDED.transaction_id,
    account_token = EXCLUDED.account_token, reason = NULL, body = EXCLUDED.body
    WHERE n.signed_at IS NULL
RETURNING n.notification_id, n.effect

-- name: find_missed_pollers
-- Returns the receipts that poll subscription or purchase $3 (app $1, environment $2) and have no follow-ups.
SELECT w.receipt_id
FROM (SELECT s.polled_by AS receipt_id FROM ledger.subscription s
      WHERE s.app_id = $1::int AND s.environment = $2::text::ledger.environment AND s.original_transaction_id = $3::text
      UNION
      SELECT p.polled_by FROM ledger.purchase p
      WHERE p.app_id = $1::int AND p.environment = $2::text::ledger.environment AND p.original_transaction_id = $3::text) w
LEFT JOIN ledger.poll_schedule s USING (receipt_id)
WHERE w.receipt_id IS NOT NULL AND COALESCE(s.follow_ups, 0) = 0

-- name: find_receipt_purchases
-- Returns the one-time purchases $3 (app $1, environment $2) about which verifyReceipt is asked.
SELECT p.purchase_id
FROM ledger.purchase p
JOIN ledger.receipt r ON r.receipt_id = p.polled_by
JOIN ledger.app a ON a.app_id = p.app_id
WHERE p.app_id = $1::int AND p.environment = $2::text::ledger.environment AND p.original_transaction_id = $3::text
  AND r.form = 'receipt' AND a.verifier <> 'server_api'

-- name: find_token_receipts
-- Returns the newest receipts, at most $3, of the customer whom account token $2 of app $1 names: by an order, else by the
-- customer's own name, through merges.
WITH named AS (
    SELECT COALESCE(c.merged_into, c.customer_id) AS customer_id
    FROM ledger.customer c WHERE c.app_id = $1::int AND c.name IN (lower($2::text), upper($2::text))
    UNION
    SELECT COALESCE(c.merged_into, c.customer_id)
    FROM ledger.purchase_order o JOIN ledger.customer c USING (customer_id)
    WHERE o.app_id = $1::int AND o.app_account_token::text = lower($2::text)
)
SELECT u.receipt_id
FROM named JOIN ledger.upload u USING (customer_id) JOIN ledger.receipt r USING (receipt_id)
WHERE r.erased_at IS NULL AND r.verified_at IS NOT NULL
ORDER BY r.receipt_created_at DESC NULLS LAST, u.receipt_id DESC LIMIT $3::int

-- name: find_unpolled
-- Returns the oldest verified notifications, at most $1, about what no receipt polls, of apps that have a server key by now;
-- locks them, and leaves out those that another worker has.
SELECT n.notification_id, n.app_id, n.environment::text AS environment,
       COALESCE(n.transaction_id, n.original_transaction_id) AS transaction_id
FROM ledger.notification n
JOIN ledger.server_key k USING (app_id)
JOIN ledger.app a USING (app_id)
WHERE n.effect = 'unpolled' AND a.removed_at IS NULL
ORDER BY n.notification_id LIMIT $1::int
FOR UPDATE OF n SKIP LOCKED

-- name: lock_new_server_key
-- Returns an app that got a server key since, as long as something of it may be left to take up, and locks the key. An app that
-- another worker goes through is left to it.
SELECT k.app_id FROM ledger.server_key k WHERE k.taken_up IS NOT NULL
ORDER BY k.app_id LIMIT 1
FOR UPDATE SKIP LOCKED

-- name: find_unasked_purchases
-- Returns the oldest verified notifications of app $1, at most $2, about one-time purchases that no receipt polls by the Server
-- API, which was not asked since, and the receipts that poll them: those that no answer showed, and refunds whose share none
-- showed. Locks the notifications, and leaves out those that another worker has.
SELECT n.notification_id, n.app_id, n.environment::text AS environment,
       COALESCE(n.transaction_id, n.original_transaction_id) AS transaction_id, p.polled_by
FROM ledger.notification n
JOIN ledger.app a USING (app_id)
JOIN ledger.purchase p
  ON p.app_id = n.app_id AND p.environment = n.environment AND p.original_transaction_id = n.original_transaction_id
LEFT JOIN ledger.receipt r ON r.receipt_id = p.polled_by
WHERE n.notification_id IN (
        SELECT w.notification_id FROM ledger.notification w WHERE w.app_id = $1::int AND w.effect IN ('asked', 'unshown')
        UNION ALL
        SELECT w.notification_id FROM ledger.notification w
        WHERE w.app_id = $1::int AND w.kind = 'REFUND' AND w.effect = 'applied')
  AND a.removed_at IS NULL
  AND (n.effect <> 'applied' OR p.revoked_at IS NOT NULL
      AND ledger.shown_percentage(p.facts) IS DISTINCT FROM (p.facts #>> '{refunded,percentage}')::int)
  AND (p.polled_by IS NULL OR r.form = 'receipt' AND a.verifier <> 'server_api')
  AND NOT EXISTS (
      SELECT FROM ledger.receipt t LEFT JOIN ledger.poll_schedule q USING (receipt_id)
      WHERE t.app_id = n.app_id
        AND t.digest = ledger.pointer_digest(COALESCE(n.transaction_id, n.original_transaction_id))
        AND (q.receipt_id IS NOT NULL OR t.erased_at IS NOT NULL OR t.verified_at > n.received_at))
ORDER BY n.notification_id LIMIT $2::int
FOR UPDATE OF n SKIP LOCKED

-- name: take_up_ownerless
-- Goes through the next receipts, at most $2, that notifications made, of app $1, which got a server key since: those that hold
-- what no receipt polls are asked about at once.
WITH key AS MATERIALIZED (
    SELECT k.app_id, k.taken_up FROM ledger.server_key k WHERE k.app_id = $1::int AND k.taken_up IS NOT NULL
), next AS MATERIALIZED (
    SELECT r.receipt_id, r.app_id, r.environment, r.erased_at
    FROM key CROSS JOIN LATERAL (
        SELECT r.* FROM ledger.receipt r
        WHERE r.app_id = key.app_id AND r.form = 'transaction_id' AND r.receipt_id > key.taken_up
        ORDER BY r.receipt_id LIMIT $2::int) r
), asked AS (
    INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
    SELECT r.receipt_id, r.app_id, 'retry', now(), now(), r.environment IS NOT DISTINCT FROM 'Sandbox'
    FROM next r
    WHERE r.erased_at IS NULL
      AND NOT EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
      AND NOT EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id)
      AND (EXISTS (SELECT FROM ledger.receipt_subscription l JOIN ledger.subscription s USING (subscription_id)
                   WHERE l.receipt_id = r.receipt_id AND s.polled_by IS NULL OFFSET 0)
        OR EXISTS (SELECT FROM ledger.receipt_purchase l JOIN ledger.purchase p USING (purchase_id)
                   WHERE l.receipt_id = r.receipt_id AND p.polled_by IS NULL OFFSET 0))
    ORDER BY r.receipt_id
    ON CONFLICT DO NOTHING
)
UPDATE ledger.server_key k
SET taken_up = CASE WHEN n.receipts = $2::int THEN n.last END
FROM key, (SELECT count(*) AS receipts, max(n.receipt_id) AS last FROM next n) n
WHERE k.app_id = key.app_id

-- name: find_keyless
-- Returns receipts, at most $1, that notifications made and that cannot be asked about, because their apps have no server key:
-- those that are scheduled or poll something.
SELECT r.receipt_id
FROM ledger.app a
CROSS JOIN LATERAL (
    SELECT r.receipt_id FROM ledger.receipt r
    WHERE r.app_id = a.app_id AND r.form = 'transaction_id' AND r.erased_at IS NULL
      AND NOT EXISTS (SELECT FROM ledger.upload u WHERE u.receipt_id = r.receipt_id)
      AND NOT EXISTS (SELECT FROM ledger.order_receipt x WHERE x.receipt_id = r.receipt_id)
      AND (EXISTS (SELECT FROM ledger.poll_schedule q WHERE q.receipt_id = r.receipt_id)
        OR EXISTS (SELECT FROM ledger.subscription s WHERE s.polled_by = r.receipt_id)
        OR EXISTS (SELECT FROM ledger.purchase p WHERE p.polled_by = r.receipt_id))
    OFFSET 0) r
WHERE NOT EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = a.app_id)
ORDER BY r.receipt_id LIMIT $1::int

-- name: give_up
-- What receipts ($1) were asked about, and no other receipt polls, is known by notification only again.
UPDATE ledger.notification n SET effect = 'unpolled'
WHERE n.app_id IN (SELECT r.app_id FROM ledger.receipt r WHERE r.receipt_id = ANY($1::bigint[]))
  AND n.effect IN ('asked', 'planned')
  AND NOT EXISTS (
      SELECT FROM ledger.subscription s
      WHERE s.app_id = n.app_id AND s.environment = n.environment AND s.original_transaction_id = n.original_transaction_id
        AND s.polled_by <> ALL($1::bigint[]))
  AND NOT EXISTS (
      SELECT FROM ledger.purchase p
      WHERE p.app_id = n.app_id AND p.environment = n.environment AND p.original_transaction_id = n.original_transaction_id
        AND p.polled_by <> ALL($1::bigint[]))

-- name: write_effects
-- Stores what became of verified notifications ($1): their effects ($2; null: as before), and whether their prices are part of the
-- ledger by now ($3). What is applied keeps no account token.
UPDATE ledger.notification n
SET effect = COALESCE(r.effect, n.effect), price_taken = n.price_taken OR r.price_taken,
    account_token = CASE WHEN r.effect IS DISTINCT FROM 'applied' THEN n.account_token END
FROM unnest($1::bigint[], $2::text[], $3::boolean[]) AS r(notification_id, effect, price_taken)
WHERE n.notification_id = r.notification_id

-- name: want_receipts
-- Has receipts ($1) asked about $3 seconds from now, or $5 seconds after their last answer or after the check under way, for
-- notifications whose subject no receipt polls; $2 says of each whether the sandbox is asked as long as Apple did not say. With $4
-- they are asked again until an answer shows what the notification states.
WITH named AS MATERIALIZED (
    SELECT n.receipt_id, bool_or(n.is_sandbox) AS is_sandbox
    FROM unnest($1::bigint[], $2::boolean[]) AS n(receipt_id, is_sandbox) GROUP BY n.receipt_id
), wanted AS MATERIALIZED (
    SELECT r.receipt_id, r.app_id, COALESCE(r.environment = 'Sandbox', n.is_sandbox) AS is_sandbox, GREATEST(
               now() + make_interval(secs => $3::float8),
               CASE WHEN s.leased_by IS NOT NULL AND s.due_at > now() THEN now()
                    ELSE GREATEST(r.asked_at, s.confirmed_at) END + make_interval(secs => $5::float8)) AS at
    FROM named n JOIN ledger.receipt r USING (receipt_id) LEFT JOIN ledger.poll_schedule s USING (receipt_id)
    WHERE r.erased_at IS NULL
), locked AS MATERIALIZED (
    SELECT s.receipt_id, s.lane = 'quarantine' OR (s.leased_by IS NOT NULL AND s.due_at > now()) AS keeps_pace
    FROM ledger.poll_schedule s WHERE s.receipt_id = ANY($1::bigint[])
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE
), pulled AS (
    UPDATE ledger.poll_schedule s
    SET want_at = CASE WHEN l.keeps_pace THEN LEAST(s.want_at, w.at) ELSE s.want_at END,
        due_at = CASE WHEN l.keeps_pace THEN s.due_at ELSE LEAST(s.due_at, w.at) END,
        scheduled_for = CASE WHEN l.keeps_pace THEN s.scheduled_for ELSE LEAST(s.scheduled_for, w.at) END,
        lane = CASE WHEN l.keeps_pace THEN s.lane ELSE ledger.pulled_lane(s) END,
        follow_ups = CASE WHEN $4::boolean THEN 4 ELSE s.follow_ups END, fingerprint = NULL
    FROM locked l JOIN wanted w USING (receipt_id)
    WHERE s.receipt_id = l.receipt_id
)
INSERT INTO ledger.poll_schedule AS s (receipt_id, app_id, lane, due_at, scheduled_for, follow_ups, is_sandbox)
SELECT w.receipt_id, w.app_id, 'retry', w.at, w.at, CASE WHEN $4::boolean THEN 4 ELSE 0 END, w.is_sandbox
FROM wanted w
WHERE w.receipt_id NOT IN (SELECT receipt_id FROM locked)
ORDER BY w.receipt_id
ON CONFLICT (receipt_id) DO UPDATE
SET follow_ups = GREATEST(s.follow_ups, EXCLUDED.follow_ups), fingerprint = NULL

-- name: store_unasked_notification
-- Stores a notification of app $1 that pulls nothing ($2 version, $3 kind, $4 subkind, $5 environment, $6 original
-- transaction id, $7 effect, $8 body).
INSERT INTO ledger.notification (
    app_id, received_at, version, kind, subkind, environment, original_transaction_id, effect, body)
VALUES ($1::int, now(), $2::smallint, $3::text, $4::text, $5::text::ledger.environment, $6::text, $7::text, $8::text::json)

-- name: store_notification
-- Stores a notification of app $1 ($2 version, $3 kind, $4 subkind, $5 Apple's id, $6 environment, $7 original
-- transaction id, $8 body, $9 about another app, $12 why it is not verified). Moves the next check of the item it names forward to $10 seconds from
-- now, or to $11 seconds after the last answer about the receipt or after the check under way. A repetition does nothing. The receipt
-- that polls the item does the check; a receipt in quarantine keeps its schedule.
WITH clock AS MATERIALIZED (
    SELECT now() AS at
), news AS MATERIALIZED (
    SELECT FROM clock WHERE NOT EXISTS (
        SELECT FROM ledger.notification n WHERE n.app_id = $1::int AND n.apple_id = $5::text)
), polled AS MATERIALIZED (
    SELECT s.polled_by AS receipt_id
    FROM news, ledger.subscription s
    WHERE NOT $9::boolean AND s.app_id = $1::int AND s.environment = $6::text::ledger.environment
      AND s.original_transaction_id = $7::text AND s.polled_by IS NOT NULL
    UNION
    SELECT p.polled_by
    FROM news, ledger.purchase p
    WHERE NOT $9::boolean AND p.app_id = $1::int AND p.environment = $6::text::ledger.environment
      AND p.original_transaction_id = $7::text AND p.polled_by IS NOT NULL
), wanted AS MATERIALIZED (
    SELECT GREATEST(
               clock.at + make_interval(secs => $10::float8),
               max(CASE WHEN s.leased_by IS NOT NULL AND s.due_at > clock.at THEN clock.at
                        ELSE GREATEST(r.asked_at, s.confirmed_at) END) + make_interval(secs => $11::float8)) AS at
    FROM clock
    LEFT JOIN polled ON true
    LEFT JOIN ledger.receipt r USING (receipt_id)
    LEFT JOIN ledger.poll_schedule s USING (receipt_id)
    GROUP BY clock.at
), locked AS MATERIALIZED (
    SELECT s.receipt_id, s.lane = 'quarantine' OR (s.leased_by IS NOT NULL AND s.due_at > clock.at) AS keeps_pace
    FROM ledger.poll_schedule s, clock
    WHERE s.receipt_id IN (SELECT receipt_id FROM polled)
    ORDER BY s.receipt_id
    FOR NO KEY UPDATE OF s
), pulled AS (
    UPDATE ledger.poll_schedule s
    SET want_at = CASE WHEN l.keeps_pace THEN LEAST(s.want_at, wanted.at) ELSE s.want_at END,
        due_at = CASE WHEN l.keeps_pace THEN s.due_at ELSE LEAST(s.due_at, wanted.at) END,
        scheduled_for = CASE WHEN l.keeps_pace THEN s.scheduled_for ELSE LEAST(s.scheduled_for, wanted.at) END,
        lane = CASE WHEN l.keeps_pace THEN s.lane ELSE ledger.pulled_lane(s) END
    FROM locked l, wanted WHERE s.receipt_id = l.receipt_id
), put_back AS (
    INSERT INTO ledger.poll_schedule (receipt_id, app_id, lane, due_at, scheduled_for, is_sandbox)
    SELECT p.receipt_id, $1::int, 'retry', wanted.at, wanted.at, $6::text IS NOT DISTINCT FROM 'Sandbox'
    FROM polled p, wanted
    WHERE p.receipt_id NOT IN (SELECT receipt_id FROM locked)
    ON CONFLICT DO NOTHING
)
INSERT INTO ledger.notification (
    app_id, received_at, version, kind, subkind, apple_id, environment, original_transaction_id, effect, reason,
    check_at, body)
SELECT $1::int, clock.at, $2::smallint, $3::text, $4::text, $5::text, $6::text::ledger.environment, $7::text, e.effect, $12::text,
       CASE WHEN e.effect IN ('pulled', 'awaited') THEN wanted.at END, $8::text::json
FROM news, clock, wanted, LATERAL (
    SELECT CASE WHEN $9::boolean THEN 'ignored'
                WHEN $7::text IS NULL OR $6::text IS NULL THEN 'no_subscription'
                WHEN NOT EXISTS (SELECT FROM polled) THEN 'unknown'
                WHEN EXISTS (SELECT FROM locked WHERE keeps_pace) THEN 'awaited'
                ELSE 'pulled' END AS effect) e
ON CONFLICT DO NOTHING
RETURNING effect

-- name: prune_notifications
-- Deletes notifications received more than $1 days ago, at most the $2 oldest; returns their number. Those whose details are
-- part of the ledger stay, because a rebuild reads them. The ids of other verified ones stay for $3 days.
WITH old AS MATERIALIZED (
    SELECT notification_id FROM ledger.notification
    WHERE received_at < now() - make_interval(days => $1::int) AND effect <> 'applied' AND NOT price_taken
      AND (signed_at IS NULL OR received_at < now() - make_interval(days => $3::int))
    ORDER BY received_at LIMIT $2::int
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM ledger.notification n USING old WHERE n.notification_id = old.notification_id RETURNING 1
)
SELECT count(*) AS removed FROM removed

-- name: find_notified_app
-- Returns the app whose notifications arrive at the address with the secret of digest $1, and the time.
SELECT app_id, bundle_id, apple_app_id, sandbox_allowed, k.app_id IS NOT NULL AS has_key, clock_timestamp() AS now
FROM ledger.app LEFT JOIN ledger.server_key k USING (app_id) WHERE notification_digest = $1::bytea

-- name: set_notification_digest
-- Accepts notifications of the app with bundle $1 only at the address with the secret of digest $2 (null: nowhere).
UPDATE ledger.app SET notification_digest = $2::bytea WHERE bundle_id = $1::text RETURNING app_id

-- name: find_chains
-- Returns the numbers of headers of signed texts, by their digests $1.
SELECT c.chain_id, c.header FROM ledger.signer_chain c WHERE c.digest = ANY($1::bytea[])

-- name: store_chains
-- Stores headers of signed texts that are not known yet: $1 headers, $2 their digests, each once and in order of digest.
INSERT INTO ledger.signer_chain (header, digest)
SELECT n.header, n.digest FROM unnest($1::text[], $2::bytea[]) AS n(header, digest)
WHERE NOT EXISTS (SELECT FROM ledger.signer_chain c WHERE c.digest = n.digest)
ON CONFLICT (digest) DO NOTHING

-- name: read_waiting_notifications
-- Settlement: returns the verified notifications about subscriptions and purchases ($1 apps, $2 environments, $3 original
-- transaction ids) whose details are not part of the ledger yet, the oldest first, at most $4. Their subjects are locked.
-- is_server_asked: the Server API is asked on by another receipt than those that answered ($5).
SELECT n.notification_id, n.app_id, n.environment::text AS environment, n.original_transaction_id, n.texts,
       n.claims::text AS claims, n.signed_at, n.effect, n.price_taken, EXISTS (
           SELECT FROM ledger.server_question q
           WHERE q.notification_id = n.notification_id AND q.receipt_id <> ALL($5::bigint[])) AS is_server_asked
FROM unnest($1::int[], $2::text[], $3::text[]) AS k(app_id, environment, original_transaction_id)
JOIN ledger.notification n
    ON n.app_id = k.app_id AND n.environment = k.environment::ledger.environment
   AND n.original_transaction_id = k.original_transaction_id
WHERE n.effect IN ('asked', 'planned', 'unpolled', 'unshown')
ORDER BY n.signed_at, n.notification_id LIMIT $4::int

-- name: read_applied_notifications
-- Rebuild: returns the notifications about subscriptions and purchases ($1 apps, $2 environments, $3 original transaction ids)
-- whose details are part of the ledger, in the order in which they came; of those that are not applied the price alone is.
SELECT n.notification_id, n.app_id, n.environment::text AS environment, n.original_transaction_id, n.texts, n.effect,
       n.claims::text AS claims
FROM unnest($1::int[], $2::text[], $3::text[]) AS k(app_id, environment, original_transaction_id)
JOIN ledger.notification n
    ON n.app_id = k.app_id AND n.environment = k.environment::ledger.environment
   AND n.original_transaction_id = k.original_transaction_id
WHERE n.effect = 'applied' OR n.price_taken
ORDER BY n.notification_id
