-- The schema perennial, which other people's SQL relies on: what is so now, what was recorded, and entitled_at.

-- The state of subscriptions as of now, with the numbers by which lists find them.
CREATE VIEW ledger.subscription_state AS
SELECT s.subscription_id,
       s.app_id,
       c.customer_id,
       a.bundle_id,
       s.environment::text AS environment,
       s.original_transaction_id,
       c.name AS customer,
       s.group_id AS subscription_group_identifier,
       current.product_id,
       CASE WHEN allowed THEN 'awaiting_renewal' ELSE current.state::text END AS state,
       CASE WHEN allowed THEN 'renewal' ELSE current.reason::text END AS reason,
       (current.entitled OR allowed) AS entitled,
       s.expires_at,
       CASE WHEN allowed THEN current.allowed_until
            WHEN current.state = 'active' THEN s.expires_at
            WHEN current.entitled THEN upper(current.valid) END AS entitled_until,
       s.will_renew,
       s.renews_to_product_id,
       CASE WHEN current.state = 'active' AND NOT allowed THEN ARRAY(
            SELECT f FROM unnest(
                current.flags || s.flags
                    || CASE WHEN s.head_starts_at > clock.at THEN '{future_dated}'::text[] ELSE '{}' END) f
            GROUP BY f ORDER BY f COLLATE "C")
            ELSE current.flags END AS flags,
       s.periods,
       s.started_at,
       s.version,
       ledger.as_of(s, poller) AS as_of,
       ledger.checked_at(s, poller) AS checked_at
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
CROSS JOIN LATERAL (SELECT GREATEST(now(), ledger.as_of(s, poller)) AS at) clock
JOIN LATERAL (
    SELECT * FROM ledger.subscription_span p
    WHERE p.subscription_id = s.subscription_id AND upper_inf(p.known) AND lower(p.valid) <= clock.at
    ORDER BY lower(p.valid) DESC LIMIT 1) current ON true
CROSS JOIN LATERAL ledger.is_in_outage_allowance(current.valid, current.allowed_until, clock.at) allowed
LEFT JOIN ledger.ownership o
    ON o.subscription_id = s.subscription_id AND upper_inf(o.known) AND o.valid @> now()
LEFT JOIN ledger.customer c USING (customer_id)
WHERE s.version > 0;
COMMENT ON VIEW ledger.subscription_state IS 'What perennial.subscription_now has, found by number';

-- New columns go to the end; columns are never renamed or removed. 0024_view_columns.sql says what each column means.
CREATE VIEW perennial.subscription_now AS
SELECT bundle_id, environment, original_transaction_id, customer, subscription_group_identifier, product_id, state, reason,
       entitled, expires_at, entitled_until, will_renew, renews_to_product_id, flags, periods, started_at, version, as_of,
       checked_at
FROM ledger.subscription_state;
COMMENT ON VIEW perennial.subscription_now IS
    'One row per subscription: its state as of now by its timeline, and its owner';

CREATE VIEW perennial.entitlement_now AS
SELECT a.bundle_id, e.environment::text AS environment, c.name AS customer, e.entitlement, e.granted, e.until,
       e.product_id, e.state, e.reason, e.basis, e.as_of, e.checked_at, e.ended_at
FROM ledger.customer c
JOIN ledger.app a USING (app_id)
CROSS JOIN LATERAL ledger.entitlements(ARRAY[c.customer_id], NULL, NULL) e
WHERE c.merged_into IS NULL;
COMMENT ON VIEW perennial.entitlement_now IS
    'One row per app, customer and entitlement ever granted. A merged name appears under the customer that it means '
    'now';

CREATE FUNCTION perennial.entitled_at(
    bundle_id text, customer text, entitlement text, valid_at timestamptz, known_at timestamptz DEFAULT now())
RETURNS TABLE (
    granted boolean, until timestamptz, product_id text, state text, reason text, environment text, basis text,
    checked_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT COALESCE(e.granted, false), e.until, e.product_id, e.state, e.reason, e.environment::text,
           COALESCE(e.basis, 'none'), e.checked_at
    FROM (VALUES (1)) one
    LEFT JOIN (
        SELECT x.*
        FROM ledger.app a
        JOIN ledger.customer c ON c.app_id = a.app_id AND c.name = entitled_at.customer
        CROSS JOIN LATERAL ledger.entitlements(
            ARRAY[c.customer_id], entitled_at.valid_at, entitled_at.known_at) x
        WHERE a.bundle_id = entitled_at.bundle_id AND x.entitlement = entitled_at.entitlement) e ON true;
END
$$;
COMMENT ON FUNCTION perennial.entitled_at IS
    'Whether a customer had an entitlement at valid_at, as known at known_at (null: now). Always returns exactly '
    'one row; an unknown app, customer or entitlement is not granted, with basis none';

CREATE VIEW perennial.purchase_now AS
SELECT a.bundle_id, p.environment::text AS environment, c.name AS customer, p.transaction_id, p.original_transaction_id,
       p.product_id, p.quantity, p.purchased_at, p.revoked_at
FROM ledger.purchase p
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.ownership o ON o.purchase_id = p.purchase_id AND upper_inf(o.known) AND o.valid @> now()
LEFT JOIN ledger.customer c USING (customer_id)
WHERE p.version > 0;
COMMENT ON VIEW perennial.purchase_now IS 'One row per one-time purchase, with its owner';

CREATE VIEW perennial.event_log AS
SELECT f.position, a.bundle_id, e.environment::text AS environment,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id,
       c.name AS customer, e.kind::text AS kind, e.product_id, e.occurred_at, e.recorded_at, e.version, e.ordinal,
       e.detail
FROM ledger.event_feed f
JOIN ledger.event e USING (event_id)
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id)
LEFT JOIN ledger.customer c USING (customer_id);
COMMENT ON VIEW perennial.event_log IS
    'The feed: every committed event by its position, which is gapless from 1; the events of a subscription keep '
    'their order';

CREATE VIEW perennial.app_now AS
SELECT bundle_id, name, created_at FROM ledger.app;
COMMENT ON VIEW perennial.app_now IS 'One row per app';

CREATE VIEW perennial.product_now AS
SELECT a.bundle_id, p.product_id, p.group_id AS subscription_group_identifier, p.level, p.period, p.price_milliunits,
       p.currency
FROM ledger.product p JOIN ledger.app a USING (app_id);
COMMENT ON VIEW perennial.product_now IS 'One row per product of the catalog as it is now';

CREATE VIEW perennial.renewal_now AS
SELECT a.bundle_id, s.environment::text AS environment, s.subscription_id AS stream_id, s.original_transaction_id,
       s.will_renew, s.expires_at, s.renews_to_product_id,
       CASE WHEN s.renewal ->> 'promotional_offer_id' IS NOT NULL THEN 'promotional_offer'
            WHEN s.renewal ->> 'offer_code_ref_name' IS NOT NULL THEN 'offer_code' END AS offer,
       'price_consent_pending' = ANY (s.flags) AS price_consent_pending, ledger.as_of(s, poller) AS as_of,
       ledger.checked_at(s, poller) AS checked_at, ledger.next_check_at(s, poller) AS next_check_at
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
WHERE s.version > 0;
COMMENT ON VIEW perennial.renewal_now IS 'One row per subscription: what it renews to and when, by its newest facts';

CREATE VIEW perennial.receipt_now AS
SELECT r.receipt_id, a.bundle_id, r.environment::text AS environment,
       ARRAY(SELECT c.name FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
             WHERE u.receipt_id = r.receipt_id ORDER BY u.uploaded_at, c.name) AS customers,
       r.outcome::text AS outcome, r.reason, r.received_at, GREATEST(r.asked_at, s.confirmed_at) AS asked_at,
       GREATEST(r.verified_at, s.confirmed_at) AS verified_at, r.rejections, r.rejected_since,
       GREATEST(s.due_at, s.scheduled_for) AS due_at, s.scheduled_for,
       s.lane::text AS lane, s.attempts, s.crashes,
       s.leased_by IS NOT NULL AS is_leased, s.leased_by IS NOT NULL AND s.due_at > now() AS is_in_flight,
       b.paused_until, CASE WHEN b.paused_until > now() THEN b.paused_because END AS paused_because
FROM ledger.receipt r
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.app_budget b USING (app_id)
LEFT JOIN ledger.poll_schedule s USING (receipt_id);
COMMENT ON VIEW perennial.receipt_now IS 'One row per receipt: how Apple answered last, and when workers ask next';

CREATE VIEW perennial.feed_now AS
SELECT f.feed_id, f.position,
       (SELECT count(*) FROM ledger.event_outbox) AS unsequenced,
       (SELECT min(e.recorded_at) FROM ledger.event_outbox o JOIN ledger.event e USING (event_id)) AS unsequenced_since
FROM ledger.feed_here f;
COMMENT ON VIEW perennial.feed_now IS 'The feed, one row: its id and how far it is behind what was committed';

CREATE VIEW perennial.worker_now AS
SELECT worker_id, host, pid, started_at, heartbeat_at FROM ledger.worker
WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '2 minutes';
COMMENT ON VIEW perennial.worker_now IS 'Workers with a heartbeat within the last two minutes';

CREATE VIEW perennial.answer_log AS
SELECT o.observation_id, o.receipt_id, a.bundle_id, o.environment::text AS environment, o.outcome::text AS outcome,
       o.status, o.reason, o.first_as_of, o.last_as_of, o.recorded_at
FROM ledger.observation o JOIN ledger.app a USING (app_id);
COMMENT ON VIEW perennial.answer_log IS
    'What Apple answered: one row per meaning that a receipt was given, from the first to the last answer with it';

CREATE VIEW perennial.ownership_log AS
SELECT a.bundle_id, COALESCE(s.environment, p.environment)::text AS environment,
       CASE WHEN s.subscription_id IS NULL THEN 'purchase' ELSE 'subscription' END AS kind,
       COALESCE(s.subscription_id, p.purchase_id) AS stream_id,
       COALESCE(s.original_transaction_id, p.original_transaction_id) AS original_transaction_id, c.name AS customer,
       COALESCE(lower(o.valid), '-infinity') AS valid_from, COALESCE(upper(o.valid), 'infinity') AS valid_until,
       lower(o.known) AS known_from, upper(o.known) AS known_until, o.cause
FROM ledger.ownership o
JOIN ledger.customer c USING (customer_id)
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.subscription s USING (subscription_id)
LEFT JOIN ledger.purchase p USING (purchase_id);
COMMENT ON VIEW perennial.ownership_log IS
    'Which customer owned which subscription or one-time purchase, when, and when Perennial recorded it';

CREATE VIEW perennial.upload_log AS
SELECT a.bundle_id, s.environment::text AS environment, s.original_transaction_id, l.receipt_id, c.name AS customer,
       u.uploaded_at, u.imported
FROM ledger.receipt_subscription l
JOIN ledger.subscription s USING (subscription_id)
JOIN ledger.app a USING (app_id)
JOIN ledger.upload u USING (receipt_id)
JOIN ledger.customer c USING (customer_id);
COMMENT ON VIEW perennial.upload_log IS 'Which customers sent a receipt that holds which subscription';

CREATE VIEW perennial.manual_grant_log AS
SELECT a.bundle_id, c.name AS customer, h.entitlement, lower(h.valid) AS valid_from,
       COALESCE(upper(h.valid), 'infinity') AS valid_until, h.given_by, h.reason, h.ended_by, h.end_reason,
       lower(h.known) AS known_from, upper(h.known) AS known_until
FROM ledger.manual_grant h
JOIN ledger.customer c USING (customer_id)
JOIN ledger.app a USING (app_id);
COMMENT ON VIEW perennial.manual_grant_log IS
    'Manual grants of entitlements: by whom and why, when they apply, and when Perennial recorded it';

CREATE VIEW perennial.audit_log AS
SELECT t.audit_id, t.happened_at, COALESCE('key ' || t.key_id, 'user ' || t.os_user, 'perennial') AS actor, t.action,
       a.bundle_id, c.name AS customer, t.receipt_id, t.detail,
       CASE WHEN t.decided_about IS NOT NULL THEN
           ARRAY(SELECT d.name FROM ledger.customer d WHERE d.customer_id = ANY(t.decided_about) ORDER BY d.name)
       END AS decided_about
FROM ledger.audit t
LEFT JOIN ledger.app a ON a.app_id = t.app_id
LEFT JOIN ledger.customer c ON c.customer_id = t.customer_id;
COMMENT ON VIEW perennial.audit_log IS
    'Every write by a person or an API key, except a key''s orders and acknowledgements (order_log, delivery_log), and '
    'the renewal of a restored feed''s id. Never a secret and never a '
    'receipt';

CREATE VIEW perennial.notification_log AS
SELECT n.notification_id, a.bundle_id, n.environment::text AS environment, n.received_at, n.kind, n.subkind,
       n.original_transaction_id, n.effect, n.check_at
FROM ledger.notification n LEFT JOIN ledger.app a USING (app_id);
COMMENT ON VIEW perennial.notification_log IS
    'Apple''s notifications, what each was about and what it did, without its texts. Unverified ones stay for 90 days';

CREATE FUNCTION perennial.forget_notifications(before timestamptz) RETURNS bigint LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM ledger.notification n
        WHERE n.received_at < before AND n.effect <> 'applied' AND n.apply_at IS NULL
          AND (n.signed_at IS NULL OR n.received_at < now() - interval '200 days')
        RETURNING 1)
    SELECT count(*) FROM gone
$$;
COMMENT ON FUNCTION perennial.forget_notifications IS
    'Removes notifications that came before an instant, and returns how many. Those whose facts are part of the ledger '
    'stay, and the ids of verified ones for 200 days. For perennial_owner';

CREATE FUNCTION perennial.keep_feed_id() RETURNS void LANGUAGE sql AS $$
    UPDATE ledger.feed SET place = ledger.feed_place()
$$;
COMMENT ON FUNCTION perennial.keep_feed_id IS
    'Keeps the feed''s id after a move to a cluster that has every event, such as by pg_upgrade. For the schema''s owner, '
    'before any process runs';

CREATE FUNCTION ledger.app_key(bundle_id text) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
    known int;
BEGIN
    SELECT a.app_id INTO known FROM ledger.app a WHERE a.bundle_id = app_key.bundle_id;
    IF known IS NULL THEN
        RAISE EXCEPTION 'There is no app %; add it with `perennial app add`.', bundle_id;
    END IF;
    RETURN known;
END $$;
COMMENT ON FUNCTION ledger.app_key IS 'The key of an app, or an error if there is no such app';

CREATE FUNCTION perennial.set_price(
    bundle_id text, product_id text, storefront text, price_milliunits bigint, currency text,
    valid_from timestamptz DEFAULT NULL, valid_until timestamptz DEFAULT NULL)
RETURNS void LANGUAGE sql AS $$
    SELECT ledger.record_price(
        ledger.app_key(bundle_id), product_id, storefront, tstzrange(valid_from, valid_until), price_milliunits, currency)
$$;
COMMENT ON FUNCTION perennial.set_price IS
    'Sets what a product costs in a storefront (empty: the default one), in thousandths of currency, from valid_from '
    '(null: ever) until valid_until (null: on and on). A price that is null ends the one before. Earlier knowledge is '
    'kept. For perennial_owner';

CREATE FUNCTION perennial.set_small_business(
    bundle_id text, valid_from timestamptz, valid_until timestamptz DEFAULT NULL)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO ledger.small_business (app_id, valid)
    VALUES (ledger.app_key(bundle_id), tstzrange(valid_from, valid_until))
$$;
COMMENT ON FUNCTION perennial.set_small_business IS
    'States that the app''s owner is in Apple''s Small Business Program from valid_from until valid_until (null: on and '
    'on). For perennial_owner';
