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
       ledger.checked_at(s, poller) AS checked_at,
       s.sale ->> 'plan' AS plan,
       CASE WHEN term.runs THEN (s.sale ->> 'payment_number')::int END AS payment_number,
       CASE WHEN term.runs THEN (s.sale ->> 'payments')::int END AS payments,
       CASE WHEN term.runs THEN term.ends_at END AS commitment_ends_at,
       s.next_payment,
       (s.sale ->> 'seats')::int AS seats
FROM ledger.subscription s
JOIN ledger.app a USING (app_id)
LEFT JOIN ledger.poll_schedule poller ON poller.receipt_id = s.polled_by
CROSS JOIN LATERAL (SELECT GREATEST(now(), ledger.as_of(s, poller)) AS at) clock
JOIN LATERAL (
    SELECT * FROM ledger.subscription_span p
    WHERE p.subscription_id = s.subscription_id AND upper_inf(p.known) AND lower(p.valid) <= clock.at
    ORDER BY lower(p.valid) DESC LIMIT 1) current ON true
-- A term that Apple ended runs no longer, whatever its date.
CROSS JOIN LATERAL (
    SELECT current.state NOT IN ('expired', 'revoked') AS runs,
           to_timestamp((s.sale ->> 'term_ends_at_ms')::bigint / 1000.0) AS ends_at) term
CROSS JOIN LATERAL ledger.is_in_outage_allowance(current.valid, current.allowed_until, clock.at) allowed
LEFT JOIN ledger.ownership o
    ON o.subscription_id = s.subscription_id AND upper_inf(o.known) AND o.valid @> now()
LEFT JOIN ledger.customer c USING (customer_id)
WHERE s.version > 0;
COMMENT ON VIEW ledger.subscription_state IS 'What perennial.subscription_now has, found by number';

-- New columns go to the end; columns are never renamed or removed. 0016_columns.sql says what each column means.
CREATE VIEW perennial.subscription_now AS
SELECT bundle_id, environment, original_transaction_id, customer, subscription_group_identifier, product_id, state, reason,
       entitled, expires_at, entitled_until, will_renew, renews_to_product_id, flags, periods, started_at, version, as_of,
       checked_at, plan, payment_number, payments, commitment_ends_at, next_payment, seats
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
       ledger.checked_at(s, poller) AS checked_at, ledger.next_check_at(s, poller) AS next_check_at, s.next_payment,
       COALESCE((s.sale ->> 'payment_number')::int < (s.sale ->> 'payments')::int, false) AS is_within_term,
       'change_scheduled' = ANY (s.flags) AS change_scheduled
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
       b.paused_until, CASE WHEN b.paused_until > now() THEN b.paused_because
           ELSE COALESCE(
               (SELECT 'Apple refuses the shared secret (21004)' FROM ledger.secret_trial t
                WHERE t.app_id = r.app_id AND t.paused_since IS NOT NULL AND a.verifier = 'verify_receipt'
                  AND (t.environment = 'Sandbox') = COALESCE(s.is_sandbox, r.environment = 'Sandbox', false)),
               (SELECT max(COALESCE(c.refused_because, 'Apple asks for fewer requests')) FROM ledger.call_budget c
                WHERE c.app_id = r.app_id AND c.endpoint IN ('statuses', 'history') AND c.paused_until > now()
                  AND a.verifier = 'server_api'
                  AND (c.environment = 'Sandbox') = COALESCE(s.is_sandbox, r.environment = 'Sandbox', false)))
       END AS paused_because
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

CREATE VIEW perennial.order_log AS
SELECT l.order_id::text AS order_id, a.bundle_id, head.name AS customer, o.product_id, o.quantity,
       o.environment::text AS environment, l.state::text AS state, l.cause, l.changed_at AS at
FROM ledger.order_change l
JOIN ledger.purchase_order o USING (order_id)
JOIN ledger.app a USING (app_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id);
COMMENT ON VIEW perennial.order_log IS 'Every change of every order; customer is the one that its name means now';

CREATE VIEW perennial.delivery_log AS
SELECT a.bundle_id, d.delivery_id::text AS delivery_id, d.position, head.name AS customer, d.environment::text AS environment,
       d.product_id, d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id,
       d.transaction_id, d.original_transaction_id, d.state::text AS state, d.created_at,
       CASE WHEN d.state = 'acknowledged' THEN d.settled_at END AS acknowledged_at,
       CASE WHEN d.state = 'acknowledged' THEN d.settled_by END AS acknowledged_by, d.skip_reason
FROM ledger.delivery_now d
JOIN ledger.app a USING (app_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id);
COMMENT ON VIEW perennial.delivery_log IS
    'Every delivery: what a purchase or period gives (odd turn) or takes back (even turn)';

CREATE VIEW perennial.credit_balance AS
SELECT a.bundle_id, head.name AS customer, d.environment::text AS environment, d.credit,
       sum(CASE WHEN d.turn % 2 = 1 THEN d.units ELSE -d.units END) AS units
FROM ledger.delivery d
JOIN ledger.app a USING (app_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id)
WHERE d.credit IS NOT NULL AND d.skip_reason IS NULL
  AND NOT EXISTS (SELECT FROM ledger.due_delivery q WHERE q.delivery_id = d.delivery_id)
GROUP BY a.bundle_id, head.name, d.environment, d.credit;
COMMENT ON VIEW perennial.credit_balance IS
    'What acknowledged deliveries gave each customer of each credit, less what they took back. The operator''s service '
    'knows what of it was used up';

CREATE VIEW perennial.delivery_due AS
SELECT a.bundle_id, d.delivery_id::text AS delivery_id, d.position, head.name AS customer, q.environment::text AS environment,
       d.product_id, d.kind::text AS kind, d.credit, d.units, d.turn, d.reason, d.order_id::text AS order_id,
       d.transaction_id, d.original_transaction_id, d.created_at, (
           SELECT sum(CASE WHEN l.turn % 2 = 1 THEN l.units ELSE -l.units END)
           FROM ledger.delivery l
           WHERE l.customer_id IN (SELECT head.customer_id
                                   UNION ALL
                                   SELECT n.customer_id FROM ledger.customer n WHERE n.merged_into = head.customer_id)
             AND l.environment = d.environment AND l.credit = d.credit AND l.skip_reason IS NULL
             AND NOT EXISTS (SELECT FROM ledger.due_delivery o WHERE o.delivery_id = l.delivery_id)) AS balance
FROM ledger.due_delivery q
JOIN ledger.app a USING (app_id)
JOIN ledger.delivery d USING (delivery_id)
JOIN ledger.customer c USING (customer_id)
JOIN ledger.customer head ON head.customer_id = COALESCE(c.merged_into, c.customer_id);
COMMENT ON VIEW perennial.delivery_due IS
    'Every due delivery: what the operator''s service has not carried out. It reads what is due, not what was delivered';

CREATE VIEW perennial.notification_log AS
SELECT n.notification_id, a.bundle_id, n.environment::text AS environment, n.received_at, n.kind, n.subkind,
       n.original_transaction_id, n.effect, n.check_at
FROM ledger.notification n LEFT JOIN ledger.app a USING (app_id);
COMMENT ON VIEW perennial.notification_log IS
    'Apple''s notifications, what each was about and what it did, without its texts. Unverified ones stay for 90 days';

CREATE VIEW perennial.support_log AS
SELECT c.request_id::text AS request_id, a.bundle_id, c.environment::text AS environment, c.kind, c.subject, c.request,
       c.outcome, c.reason, c.code, c.extended_until, c.attempts, c.first_asked_at, c.asked_at, c.answered_at
FROM ledger.support_call c JOIN ledger.app a USING (app_id);
COMMENT ON VIEW perennial.support_log IS
    'What people asked Apple to change, and what came of it. audit_log has who asked, by detail ->> ''request_id''';

CREATE VIEW perennial.channel_coverage AS
SELECT a.bundle_id, a.compares_since, count(s.subscription_id) AS live,
       count(s.subscription_id) FILTER (WHERE c.compared_at >= a.compares_since) AS compared
FROM ledger.app a
LEFT JOIN (ledger.subscription s
           JOIN ledger.receipt r ON r.receipt_id = s.polled_by AND r.form = 'receipt'
           JOIN ledger.subscription_span p
             ON p.subscription_id = s.subscription_id AND upper_inf(p.known) AND p.valid @> now() AND p.entitled)
       ON s.app_id = a.app_id
LEFT JOIN ledger.channel_comparison c ON c.subscription_id = s.subscription_id
WHERE a.verifier = 'both'
GROUP BY a.app_id;
COMMENT ON VIEW perennial.channel_coverage IS
    'One row for each app that asks both channels: how many of its live subscriptions were compared. Subscriptions that '
    'verifyReceipt cannot be asked about do not count';

CREATE VIEW perennial.channel_difference AS
SELECT a.bundle_id, d.environment::text AS environment, d.original_transaction_id,
       NULLIF(d.transaction_id, '') AS transaction_id, d.fact, d.verify_receipt, d.server_api,
       CASE WHEN d.agreed_at IS NOT NULL THEN 'agreed' WHEN d.explanation IS NOT NULL THEN 'explained'
            WHEN d.waits_until > now() THEN 'waiting' ELSE 'unexplained' END AS standing,
       d.explanation, d.first_seen_at, d.last_seen_at, d.agreed_at
FROM ledger.channel_difference d
JOIN ledger.app a USING (app_id)
WHERE d.first_seen_at >= a.compares_since;
COMMENT ON VIEW perennial.channel_difference IS
    'One row for each fact that the channels stated differently since both are asked, also where they agree by now';

CREATE FUNCTION perennial.forget_notifications(before timestamptz) RETURNS bigint LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM ledger.notification n
        WHERE n.received_at < before AND n.effect <> 'applied' AND NOT n.price_taken
          AND (n.signed_at IS NULL OR n.received_at < now() - interval '200 days')
        RETURNING 1)
    SELECT count(*) FROM gone
$$;
COMMENT ON FUNCTION perennial.forget_notifications IS
    'Removes notifications that came before an instant, and returns how many. Those whose details are part of the ledger '
    'stay, and the ids of verified ones for 200 days. For perennial_owner';

CREATE FUNCTION perennial.keep_feed_id() RETURNS void LANGUAGE sql AS $$
    UPDATE ledger.feed SET place = ledger.feed_place()
$$;
COMMENT ON FUNCTION perennial.keep_feed_id IS
    'Keeps the feed''s id after a move to a cluster that has every event, such as by pg_upgrade. For the schema''s owner, '
    'before any process runs';

CREATE INDEX period_moved ON ledger.period (subscription_id) WHERE ledger.is_moved(is_upgraded, cancellation_reason);
CREATE INDEX period_history_moved ON ledger.period_history (subscription_id)
    WHERE ledger.is_moved(is_upgraded, cancellation_reason);

CREATE VIEW perennial.moved_period AS
SELECT p.subscription_id AS former_stream_id, p.period_id AS former_charge_id, h.subscription_id AS stream_id,
       h.period_id AS charge_id, p.known_from, p.known_until
FROM (
    SELECT period_id, subscription_id, cancellation_reason, COALESCE(facts_recorded_at, recorded_at) AS known_from,
           NULL::timestamptz AS known_until
    FROM ledger.period WHERE ledger.is_moved(is_upgraded, cancellation_reason)
    UNION ALL
    SELECT period_id, subscription_id, cancellation_reason, lower(known), upper(known)
    FROM ledger.period_history WHERE NOT isempty(known) AND ledger.is_moved(is_upgraded, cancellation_reason)) p
JOIN ledger.period o USING (period_id)
JOIN ledger.subscription s ON s.subscription_id = p.subscription_id
JOIN ledger.subscription t ON (t.app_id, t.environment) = (s.app_id, s.environment)
    AND t.original_transaction_id = substr(p.cancellation_reason, length('moved to ') + 1)
JOIN ledger.period h ON h.subscription_id = t.subscription_id
    AND (h.web_order_line_item_id = o.web_order_line_item_id
         OR o.web_order_line_item_id IS NULL AND EXISTS (
             SELECT FROM ledger.transaction_alias x JOIN ledger.transaction_alias y USING (transaction_id)
             WHERE x.period_id = o.period_id AND y.period_id = h.period_id));
COMMENT ON VIEW perennial.moved_period IS
    'Every period that Apple showed under another original transaction id before, with where it was: the events of its '
    'time there are in that stream';
