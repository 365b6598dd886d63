-- One settlement: what it writes after it decided.

-- name: reserve_ids
-- Settlement: reserves $1 observation ids and $2 period ids.
SELECT 'observation' AS of, nextval('ledger.observation_id_seq') AS id FROM generate_series(1, $1::int)
UNION ALL
SELECT 'period', nextval(pg_get_serial_sequence('ledger.period', 'period_id')) FROM generate_series(1, $2::int)

-- name: delete_periods
-- Settlement: deletes periods ($1) that proved to be the same as another; keeps the record that they were once
-- separate.
WITH doubled AS (
    DELETE FROM ledger.period WHERE period_id = ANY($1::bigint[]) RETURNING *
)
INSERT INTO ledger.period_history
    (period_id, subscription_id, known, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial,
     is_intro, promotional_offer_id, offer_code_ref_name, ownership, price_milliunits, price_currency,
     revocation_percentage, sale, cancellation_reason, recorded_at, cancellation_recorded_at)
SELECT period_id, subscription_id, tstzrange(COALESCE(facts_recorded_at, recorded_at), clock_timestamp()), product_id,
       quantity, purchased_at, expires_at, cancelled_at, is_upgraded, is_trial, is_intro, promotional_offer_id,
       offer_code_ref_name, ownership, price_milliunits, price_currency, revocation_percentage, sale, cancellation_reason,
       recorded_at, cancellation_recorded_at
FROM doubled

-- name: write_periods
-- Settlement: inserts new periods and rewrites changed ones; ids were reserved, $1 to $29 are the columns named below.
-- Keeps the earlier version of every fact that figures depend on, so that reports can show them as known then.
WITH given AS MATERIALIZED (
    SELECT n.*, CASE WHEN n.cancelled_at IS NOT NULL OR (n.sale ->> 'revoked_seats')::int > 0
                     THEN n.recorded_at END AS cancellation_recorded_at
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::int[], $6::timestamptz[], $7::timestamptz[],
                $8::timestamptz[], $9::timestamptz[], $10::text[], $11::boolean[], $12::boolean[], $13::boolean[],
                $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::bigint[],
                $21::text[], $22::int[], $23::jsonb[], $24::jsonb[], $25::timestamptz[], $26::text[],
                $27::jsonb[], $28::boolean[], $29::timestamptz[])
        AS n(period_id, subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
             original_purchased_at, cancelled_at, cancellation_reason, is_upgraded, is_trial, is_intro,
             promotional_offer_id, offer_code_ref_name, group_id, ownership, app_account_token, replaced_by,
             price_milliunits, price_currency, revocation_percentage, sale, ending, as_of, path, older_facts, is_renewal,
             recorded_at)
), past AS (
    INSERT INTO ledger.period_history
        (period_id, subscription_id, known, product_id, quantity, purchased_at, expires_at, cancelled_at, is_upgraded,
         is_trial, is_intro, promotional_offer_id, offer_code_ref_name, ownership, price_milliunits, price_currency,
         revocation_percentage, sale, cancellation_reason, recorded_at, cancellation_recorded_at)
    SELECT p.period_id, p.subscription_id, tstzrange(COALESCE(p.facts_recorded_at, p.recorded_at), n.recorded_at),
           p.product_id, p.quantity, p.purchased_at, p.expires_at, p.cancelled_at, p.is_upgraded, p.is_trial, p.is_intro,
           p.promotional_offer_id, p.offer_code_ref_name, p.ownership, p.price_milliunits, p.price_currency,
           p.revocation_percentage, p.sale, p.cancellation_reason, p.recorded_at, p.cancellation_recorded_at
    FROM given n JOIN ledger.period p USING (period_id)
    WHERE (p.product_id, p.quantity, p.purchased_at, p.expires_at, p.cancelled_at, p.is_upgraded, p.is_trial, p.is_intro,
           p.promotional_offer_id, p.offer_code_ref_name, p.ownership, p.price_milliunits, p.price_currency,
           p.revocation_percentage, p.sale, p.cancellation_reason)
        IS DISTINCT FROM
          (n.product_id, n.quantity, n.purchased_at, n.expires_at, n.cancelled_at, n.is_upgraded, n.is_trial, n.is_intro,
           n.promotional_offer_id, n.offer_code_ref_name, n.ownership, n.price_milliunits, n.price_currency,
           n.revocation_percentage, n.sale, n.cancellation_reason)
    RETURNING period_id
)
INSERT INTO ledger.period AS p
    (period_id, subscription_id, web_order_line_item_id, product_id, quantity, purchased_at, expires_at,
     original_purchased_at, cancelled_at, cancellation_reason, is_upgraded, is_trial, is_intro, promotional_offer_id,
     offer_code_ref_name, group_id, ownership, app_account_token, replaced_by, price_milliunits, price_currency,
     revocation_percentage, sale, ending, as_of, path, older_facts, is_renewal, recorded_at, cancellation_recorded_at)
OVERRIDING SYSTEM VALUE
SELECT n.* FROM given n
ON CONFLICT (period_id) DO UPDATE SET
    web_order_line_item_id = EXCLUDED.web_order_line_item_id, product_id = EXCLUDED.product_id,
    quantity = EXCLUDED.quantity, purchased_at = EXCLUDED.purchased_at, expires_at = EXCLUDED.expires_at,
    original_purchased_at = EXCLUDED.original_purchased_at, cancelled_at = EXCLUDED.cancelled_at,
    cancellation_reason = EXCLUDED.cancellation_reason, is_upgraded = EXCLUDED.is_upgraded, is_trial = EXCLUDED.is_trial,
    is_intro = EXCLUDED.is_intro, promotional_offer_id = EXCLUDED.promotional_offer_id,
    offer_code_ref_name = EXCLUDED.offer_code_ref_name, group_id = EXCLUDED.group_id, ownership = EXCLUDED.ownership,
    app_account_token = EXCLUDED.app_account_token, replaced_by = EXCLUDED.replaced_by,
    price_milliunits = EXCLUDED.price_milliunits, price_currency = EXCLUDED.price_currency,
    revocation_percentage = EXCLUDED.revocation_percentage, sale = EXCLUDED.sale, ending = EXCLUDED.ending,
    as_of = EXCLUDED.as_of, path = EXCLUDED.path, older_facts = EXCLUDED.older_facts, is_renewal = EXCLUDED.is_renewal,
    cancellation_recorded_at = CASE
        WHEN (EXCLUDED.cancelled_at, EXCLUDED.sale ->> 'revoked_seats')
            IS NOT DISTINCT FROM (p.cancelled_at, p.sale ->> 'revoked_seats') THEN p.cancellation_recorded_at
        ELSE EXCLUDED.cancellation_recorded_at END,
    facts_recorded_at = CASE
        WHEN EXCLUDED.period_id IN (SELECT period_id FROM past) THEN EXCLUDED.recorded_at
        ELSE p.facts_recorded_at END

-- name: insert_aliases
-- Settlement: inserts transaction ids ($2) seen for periods ($1).
INSERT INTO ledger.transaction_alias (period_id, transaction_id)
SELECT * FROM unnest($1::bigint[], $2::text[])
ON CONFLICT DO NOTHING

-- name: write_subscriptions
-- Settlement: writes each subscription of a verified answer once; $1 to $25 are the columns named below.
UPDATE ledger.subscription s
SET group_id = n.group_id, polled_by = n.polled_by, version = n.version, as_of = n.as_of, checked_at = n.checked_at,
    recorded_at = n.recorded_at, next_check_at = n.next_check_at, renewal = n.renewal, renewal_as_of = n.renewal_as_of,
    renewal_path = n.renewal_path, suspected = n.suspected, will_renew = n.will_renew,
    renews_to_product_id = n.renews_to_product_id, flags = string_to_array(n.flags, ','), expires_at = n.expires_at,
    head_starts_at = n.head_starts_at, started_at = n.started_at, periods = n.periods, leeway_ms = n.leeway_ms,
    app_account_token = n.app_account_token, access_ends_at = n.access_ends_at, renewal_expected = n.renewal_expected,
    next_payment = n.next_payment, sale = n.sale
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[],
            $8::timestamptz[], $9::jsonb[], $10::timestamptz[], $11::text[], $12::jsonb[], $13::boolean[], $14::text[],
            $15::text[], $16::timestamptz[], $17::timestamptz[], $18::timestamptz[], $19::int[], $20::bigint[], $21::text[],
            $22::timestamptz[], $23::boolean[], $24::boolean[], $25::jsonb[])
    AS n(subscription_id, group_id, polled_by, version, as_of, checked_at, recorded_at, next_check_at, renewal,
         renewal_as_of, renewal_path, suspected, will_renew, renews_to_product_id, flags, expires_at, head_starts_at,
         started_at, periods, leeway_ms, app_account_token, access_ends_at, renewal_expected, next_payment, sale)
WHERE s.subscription_id = n.subscription_id

-- name: link_receipts
-- Settlement: links receipts ($1) with the subscriptions ($2) they contain; a subscription omitted before is contained
-- again.
INSERT INTO ledger.receipt_subscription AS l (receipt_id, subscription_id)
SELECT * FROM unnest($1::bigint[], $2::bigint[])
ON CONFLICT (subscription_id, receipt_id) DO UPDATE SET omitted_at = NULL, absences = 0 WHERE l.omitted_at IS NOT NULL

-- name: write_purchases
-- Settlement: writes each one-time purchase of a verified answer once; transaction ids are separated by commas. Keeps
-- the earlier version of every fact that figures depend on. $1 to $13 are the columns named below.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(
        $1::bigint[], $2::text[], $3::text[], $4::jsonb[], $5::int[], $6::timestamptz[], $7::timestamptz[], $8::text[],
        $9::bigint[], $10::timestamptz[], $11::timestamptz[], $12::bigint[], $13::timestamptz[])
        AS n(purchase_id, transaction_id, transaction_ids, facts, quantity, purchased_at, revoked_at, app_account_token,
             version, as_of, recorded_at, polled_by, next_check_at)
), past AS (
    INSERT INTO ledger.purchase_history
        (purchase_id, known, quantity, purchased_at, revoked_at, price_milliunits, price_currency, revocation_percentage,
         revocation_recorded_at)
    SELECT p.purchase_id, tstzrange(COALESCE(p.facts_recorded_at, p.first_recorded_at), n.recorded_at), p.quantity,
           p.purchased_at, p.revoked_at, (p.facts #>> '{price,milliunits}')::bigint, p.facts #>> '{price,currency}',
           (p.facts #>> '{refunded,percentage}')::int, p.revocation_recorded_at
    FROM given n JOIN ledger.purchase p USING (purchase_id)
    WHERE p.version > 0
      AND (p.quantity, p.purchased_at, p.revoked_at, p.facts #>> '{price,milliunits}', p.facts #>> '{price,currency}',
           p.facts #>> '{refunded,percentage}')
        IS DISTINCT FROM
          (n.quantity, n.purchased_at, n.revoked_at, n.facts #>> '{price,milliunits}', n.facts #>> '{price,currency}',
           n.facts #>> '{refunded,percentage}')
    RETURNING purchase_id
)
UPDATE ledger.purchase p
SET transaction_id = n.transaction_id, transaction_ids = string_to_array(n.transaction_ids, ','), facts = n.facts,
    quantity = n.quantity, purchased_at = n.purchased_at, revoked_at = n.revoked_at,
    revocation_recorded_at = CASE
        WHEN n.revoked_at IS NOT DISTINCT FROM p.revoked_at THEN p.revocation_recorded_at
        WHEN n.revoked_at IS NOT NULL THEN n.recorded_at END,
    app_account_token = n.app_account_token, polled_by = n.polled_by, next_check_at = n.next_check_at,
    version = n.version, as_of = n.as_of, checked_at = n.recorded_at,
    recorded_at = n.recorded_at, first_recorded_at = COALESCE(p.first_recorded_at, n.recorded_at),
    facts_recorded_at = CASE
        WHEN p.purchase_id IN (SELECT purchase_id FROM past) THEN n.recorded_at ELSE p.facts_recorded_at END
FROM given n
WHERE p.purchase_id = n.purchase_id

-- name: link_purchases
-- Settlement: links receipts ($1) with the one-time purchases ($2) they contain; a purchase omitted before is contained
-- again.
INSERT INTO ledger.receipt_purchase AS l (receipt_id, purchase_id)
SELECT * FROM unnest($1::bigint[], $2::bigint[])
ON CONFLICT (purchase_id, receipt_id) DO UPDATE SET omitted_at = NULL WHERE l.omitted_at IS NOT NULL

-- name: close_spans
-- Settlement: closes the open spans ($1 subscriptions, $2 starts) at the recorded instants ($3).
UPDATE ledger.subscription_span p
SET known = tstzrange(lower(p.known), c.recorded_at)
FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS c(subscription_id, valid_from, recorded_at)
WHERE p.subscription_id = c.subscription_id AND lower(p.valid) = c.valid_from AND upper_inf(p.known)

-- name: insert_spans
-- Settlement: inserts the present spans of timelines; flags are comma-separated words. $1 to $11 are the columns named
-- below.
INSERT INTO ledger.subscription_span
    (subscription_id, valid, known, state, reason, entitled, product_id, flags, allowed_until, version)
SELECT n.subscription_id, tstzrange(n.valid_from, n.valid_to), tstzrange(n.recorded_at, NULL), n.state::ledger.state,
       n.reason::ledger.reason, n.entitled, n.product_id, string_to_array(n.flags, ','), n.allowed_until, n.version
FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::text[], $7::boolean[],
            $8::text[], $9::text[], $10::timestamptz[], $11::bigint[])
    AS n(subscription_id, valid_from, valid_to, recorded_at, state, reason, entitled, product_id, flags, allowed_until, version)

-- name: insert_events
-- Settlement: appends events and queues them for the feed; an event that already exists stays unchanged. $1 to $14 are
-- the columns named below.
WITH new AS (
    INSERT INTO ledger.event
        (public_id, app_id, environment, subscription_id, purchase_id, version, ordinal, kind, customer_id, product_id,
         occurred_at, as_of, recorded_at, detail)
    SELECT n.public_id, n.app_id, n.environment::ledger.environment, n.subscription_id, n.purchase_id, n.version, n.ordinal,
           n.kind::ledger.event_kind, n.customer_id, n.product_id, n.occurred_at, n.as_of, n.recorded_at, n.detail
    FROM unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[], $8::text[],
                $9::bigint[], $10::text[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::jsonb[])
        AS n(public_id, app_id, environment, subscription_id, purchase_id, version, ordinal, kind, customer_id, product_id,
             occurred_at, as_of, recorded_at, detail)
    ORDER BY n.subscription_id, n.purchase_id, n.version, n.ordinal
    ON CONFLICT DO NOTHING
    RETURNING event_id
)
INSERT INTO ledger.event_outbox (event_id) SELECT event_id FROM new

-- name: end_ownerships
-- Settlement: ends ownerships ($1) at the recorded instants ($2): closes the open row and inserts it again with its
-- end.
WITH ended AS (
    UPDATE ledger.ownership o SET known = tstzrange(lower(o.known), n.recorded_at)
    FROM unnest($1::bigint[], $2::timestamptz[]) AS n(ownership_id, recorded_at)
    WHERE o.ownership_id = n.ownership_id
    RETURNING o.subscription_id, o.purchase_id, o.customer_id, o.valid, o.cause, n.recorded_at
)
INSERT INTO ledger.ownership (subscription_id, purchase_id, customer_id, valid, known, cause)
SELECT subscription_id, purchase_id, customer_id, tstzrange(lower(valid), recorded_at), tstzrange(recorded_at, NULL), cause
FROM ended WHERE lower_inf(valid) OR lower(valid) < recorded_at

-- name: insert_ownerships
-- Settlement: inserts new owners ($1 subscriptions or $2 purchases, $3 customers) from $4 (null: from the end of the
-- previous ownership) as recorded at $5, with the cause ($6).
INSERT INTO ledger.ownership (subscription_id, purchase_id, customer_id, valid, known, cause)
SELECT n.subscription_id, n.purchase_id, n.customer_id, tstzrange(COALESCE(n.valid_from, former.ended_at), NULL),
       tstzrange(n.recorded_at, NULL), n.cause
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::text[])
    AS n(subscription_id, purchase_id, customer_id, valid_from, recorded_at, cause)
LEFT JOIN LATERAL (
    SELECT max(upper(o.valid)) AS ended_at FROM ledger.ownership o
    WHERE n.valid_from IS NULL AND upper_inf(o.known)
      AND (o.subscription_id = n.subscription_id OR o.purchase_id = n.purchase_id)) former ON true

-- name: settle_uploads
-- Settlement: marks uploads ($1 receipts, $2 customers) as handled.
UPDATE ledger.upload u SET settled = true
FROM unnest($1::bigint[], $2::bigint[]) AS n(receipt_id, customer_id)
WHERE u.receipt_id = n.receipt_id AND u.customer_id = n.customer_id

-- name: extend_observations
-- Settlement: extends observations after an equal answer ($1 ids, $2 recorded, $3 clocks of the answers).
UPDATE ledger.observation o
SET last_as_of = GREATEST(o.last_as_of, n.as_of)
FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS n(observation_id, recorded_at, as_of)
WHERE o.observation_id = n.observation_id AND o.recorded_at = n.recorded_at

-- name: insert_observations
-- Settlement: inserts answers that differ in meaning from the previous ones; ids were reserved. $1 to $12 are the
-- columns named below.
INSERT INTO ledger.observation
    (observation_id, receipt_id, app_id, lease_token, outcome, status, reason, environment, first_as_of, last_as_of, meaning,
     body, recorded_at)
SELECT n.observation_id, n.receipt_id, n.app_id, n.lease_token, n.outcome::ledger.outcome, n.status, n.reason,
       n.environment::ledger.environment, n.as_of, n.as_of, n.meaning, n.body, n.recorded_at
FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::bigint[], $5::text[], $6::int[], $7::text[], $8::text[],
            $9::timestamptz[], $10::bytea[], $11::bytea[], $12::timestamptz[])
    AS n(observation_id, receipt_id, app_id, lease_token, outcome, status, reason, environment, as_of, meaning, body,
         recorded_at)

-- name: write_receipts
-- Settlement: updates receipts; $3 to $21 are the columns named below, nulls keep the present value. $1 apps, $2 how
-- many of their once-verified receipts Apple vouched for again. latest_receipt is cleared if its answer omitted what
-- the receipt polls (forgets_latest), so that the original one is used again.
WITH verified AS (
    INSERT INTO ledger.verified_minute AS v (app_id, minute, backend, answers)
    SELECT n.app_id, date_trunc('minute', clock_timestamp()), pg_backend_pid(), n.answers
    FROM unnest($1::int[], $2::bigint[]) AS n(app_id, answers)
    ON CONFLICT (app_id, minute, backend) DO UPDATE SET answers = v.answers + EXCLUDED.answers
)
UPDATE ledger.receipt r
SET environment = COALESCE(n.environment::ledger.environment, r.environment),
    receipt_created_at = GREATEST(n.receipt_created_at, r.receipt_created_at),
    latest_receipt = CASE WHEN NOT n.forgets_latest THEN COALESCE(n.latest_receipt, r.latest_receipt) END,
    outcome = COALESCE(n.outcome::ledger.outcome, r.outcome),
    reason = CASE WHEN n.outcome IS NULL THEN r.reason ELSE n.reason END, asked_at = n.asked_at,
    verified_at = COALESCE(n.verified_at, r.verified_at),
    first_verified_at = COALESCE(r.first_verified_at, r.verified_at, n.verified_at),
    rejections = n.rejections, rejected_since = n.rejected_since, equal_empty_answers = n.equal_empty_answers,
    observation_id = n.observation_id, observed_at = n.observed_at, meaning = n.meaning,
    settled_token = n.settled_token, transaction_id = COALESCE(r.transaction_id, n.transaction_id),
    vouched = r.vouched OR n.vouched, history_revision = COALESCE(n.history_revision, r.history_revision)
FROM unnest($3::bigint[], $4::text[], $5::timestamptz[], $6::bytea[], $7::text[], $8::text[], $9::timestamptz[],
            $10::timestamptz[], $11::smallint[], $12::timestamptz[], $13::smallint[], $14::bigint[], $15::timestamptz[],
            $16::bytea[], $17::bigint[], $18::boolean[], $19::text[], $20::boolean[], $21::text[])
    AS n(receipt_id, environment, receipt_created_at, latest_receipt, outcome, reason, asked_at, verified_at, rejections,
         rejected_since, equal_empty_answers, observation_id, observed_at, meaning, settled_token, forgets_latest, transaction_id, vouched,
         history_revision)
WHERE r.receipt_id = n.receipt_id

-- name: reschedule
-- Settlement: releases leases that are still ours and sets the next check; $1 worker, $2 to $14 are the columns named
-- below. Returns the receipts.
-- A receipt for which an earlier check was requested meanwhile gets that earlier check, and becomes urgent; not for a
-- notification, so that many at once take no turn from checks at an end.
UPDATE ledger.poll_schedule s
SET due_at = LEAST(n.due_at, s.want_at), scheduled_for = LEAST(n.due_at, s.want_at), want_at = NULL,
    lane = CASE WHEN n.lane = 'quarantine' OR s.want_at IS NULL OR s.want_at >= n.due_at THEN n.lane
                WHEN s.follow_ups > 0 THEN LEAST(n.lane, 'retry') ELSE LEAST(n.lane, 'expiring') END,
    attempts = n.attempts, leased_by = NULL, crashes = 0,
    fingerprint = n.fingerprint, meaning = n.meaning, polled = n.polled, confirmed_as_of = n.as_of,
    equal_until = CASE WHEN n.as_of IS NOT NULL THEN COALESCE(n.equal_until, 'infinity') END,
    confirmed_at = CASE WHEN n.as_of IS NOT NULL THEN n.recorded_at END, backs_off = n.backs_off,
    follow_ups = n.follow_ups, is_sandbox = COALESCE(r.environment = 'Sandbox', s.is_sandbox)
FROM unnest($2::bigint[], $3::bigint[], $4::timestamptz[], $5::text[]::ledger.lane[], $6::smallint[], $7::bytea[], $8::bytea[],
            $9::text[], $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::boolean[], $14::smallint[])
    AS n(receipt_id, lease_token, due_at, lane, attempts, fingerprint, meaning, polled, equal_until, as_of, recorded_at,
         backs_off, follow_ups)
    JOIN ledger.receipt r USING (receipt_id)
WHERE s.receipt_id = n.receipt_id AND s.lease_token = n.lease_token AND s.leased_by = $1::int
RETURNING s.receipt_id

-- name: retire
-- Settlement: removes receipts that need no more checks from the schedule, if the lease is still ours; $1 worker, $2
-- receipts, $3 tokens. A receipt for which a check was requested meanwhile is checked once more.
WITH ours AS MATERIALIZED (
    SELECT s.receipt_id, s.want_at
    FROM ledger.poll_schedule s JOIN unnest($2::bigint[], $3::bigint[]) AS n(receipt_id, lease_token)
        USING (receipt_id, lease_token)
    WHERE s.leased_by = $1::int
), wanted AS (
    UPDATE ledger.poll_schedule s
    SET due_at = ours.want_at, scheduled_for = ours.want_at, want_at = NULL, lane = 'expiring', attempts = 0, leased_by = NULL,
        crashes = 0, backs_off = false, fingerprint = NULL, meaning = NULL, polled = NULL, equal_until = NULL, confirmed_as_of = NULL,
        confirmed_at = NULL
    FROM ours WHERE s.receipt_id = ours.receipt_id AND ours.want_at IS NOT NULL
)
DELETE FROM ledger.poll_schedule s
USING ours WHERE s.receipt_id = ours.receipt_id AND ours.want_at IS NULL

-- name: forget_fingerprints
-- Settlement: clears the fingerprints of receipts ($1) that poll what this transaction changed; their next answers are
-- read in full. It clears the clocks of equal answers too, which are folded, of receipts ($2) that take over and of
-- those whose newest observation came from a lost lease.
UPDATE ledger.poll_schedule s
SET fingerprint = NULL, meaning = NULL, polled = NULL, equal_until = NULL,
    confirmed_as_of = CASE WHEN s.receipt_id <> ALL($2::bigint[]) THEN s.confirmed_as_of END,
    confirmed_at = CASE WHEN s.receipt_id <> ALL($2::bigint[]) THEN s.confirmed_at END
WHERE s.receipt_id = ANY($1::bigint[] || $2::bigint[]) AND s.confirmed_at IS NOT NULL

-- name: move_line_items
-- Settlement: gives the orders and deliveries of line items ($3) to the periods of the subscriptions ($2) to which they
-- moved from others ($1). Their turns go on where they are.
WITH moved AS MATERIALIZED (
    SELECT b.subscription_id AS old_subscription, b.period_id AS old_period, a.subscription_id, a.period_id,
           s.original_transaction_id
    FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS n(old_subscription, subscription_id, web_order_line_item_id)
    JOIN ledger.period b
        ON b.subscription_id = n.old_subscription
        AND (b.web_order_line_item_id = n.web_order_line_item_id OR EXISTS (
            SELECT FROM ledger.transaction_alias t
            WHERE t.period_id = b.period_id AND 'transaction ' || t.transaction_id = n.web_order_line_item_id))
    JOIN ledger.period a
        ON a.subscription_id = n.subscription_id
        AND (a.web_order_line_item_id = n.web_order_line_item_id OR EXISTS (
            SELECT FROM ledger.transaction_alias t
            WHERE t.period_id = a.period_id AND 'transaction ' || t.transaction_id = n.web_order_line_item_id))
    JOIN ledger.subscription s ON s.subscription_id = n.subscription_id
), orders AS (
    UPDATE ledger.purchase_order o SET subscription_id = m.subscription_id, period_id = m.period_id
    FROM moved m
    WHERE o.subscription_id = m.old_subscription AND o.period_id = m.old_period
)
UPDATE ledger.delivery d
SET subscription_id = m.subscription_id, period_id = m.period_id, original_transaction_id = m.original_transaction_id
FROM moved m
WHERE d.subscription_id = m.old_subscription AND d.period_id = m.old_period
  AND NOT EXISTS (
      SELECT FROM ledger.delivery l WHERE l.subscription_id = m.subscription_id AND l.period_id = m.period_id)
