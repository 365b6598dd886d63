-- Every change as an event, the feed that gives committed events gapless positions, what Apple and people said besides, and
-- what the ledger remembers about its own work.

CREATE TYPE ledger.event_kind AS ENUM (
    'subscription.started', 'trial.started', 'trial.converted', 'subscription.renewed', 'subscription.recovered',
    'subscription.reactivated', 'subscription.expired', 'trial.expired', 'auto_renew.disabled', 'auto_renew.enabled',
    'billing.retry_entered', 'billing.grace_entered', 'billing.grace_expired', 'product.changed',
    'product.change_scheduled', 'product.change_withdrawn', 'price_increase.pending', 'price_increase.accepted',
    'refund.granted', 'refund.reversed', 'family.revoked', 'subscription.extended', 'subscription.shortened',
    'purchase.made', 'purchase.refunded', 'ownership.assigned', 'ownership.transferred', 'entitlements.changed');
COMMENT ON TYPE ledger.event_kind IS 'What an event reports; docs/lifecycle.md says when each occurs';

-- No foreign key of the app: what the event is about has one, and verification compares the two. A settlement writes more
-- events than anything else, so each check of a key counts.
CREATE TABLE ledger.event (
    event_id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id        uuid NOT NULL,
    app_id           int NOT NULL,
    environment      ledger.environment NOT NULL,
    subscription_id  bigint REFERENCES ledger.subscription ON DELETE CASCADE,
    purchase_id      bigint REFERENCES ledger.purchase ON DELETE CASCADE,
    version          bigint NOT NULL,
    ordinal          smallint NOT NULL,
    kind             ledger.event_kind NOT NULL,
    customer_id      bigint REFERENCES ledger.customer,
    product_id       text,
    occurred_at      timestamptz NOT NULL,
    as_of            timestamptz NOT NULL,
    recorded_at      timestamptz NOT NULL,
    detail           jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT event_public_id_unique UNIQUE (public_id),
    CONSTRAINT event_is_not_from_the_future CHECK (occurred_at <= as_of),
    CONSTRAINT event_of_one_stream CHECK (
        CASE WHEN kind = 'entitlements.changed'
             THEN num_nonnulls(subscription_id, purchase_id, product_id) = 0 AND customer_id IS NOT NULL
             ELSE num_nonnulls(subscription_id, purchase_id) = 1 AND product_id IS NOT NULL END)
);
-- perennial.subscription_event compares kinds as text: without this the planner takes each to be rare.
CREATE STATISTICS ledger.event_kind ON (kind::text) FROM ledger.event;
CREATE UNIQUE INDEX event_of_subscription_unique ON ledger.event (subscription_id, version, ordinal)
    WHERE subscription_id IS NOT NULL;
CREATE UNIQUE INDEX event_of_purchase_unique ON ledger.event (purchase_id, version, ordinal) WHERE purchase_id IS NOT NULL;
CREATE UNIQUE INDEX event_of_customer_unique ON ledger.event (customer_id, version, ordinal)
    WHERE subscription_id IS NULL AND purchase_id IS NULL;
CREATE INDEX event_of_customer ON ledger.event (customer_id, recorded_at);
COMMENT ON TABLE ledger.event IS
    'Changes of a stream, which is a subscription, a one-time purchase or a customer''s manual changes: written with the '
    'change, once, and never changed';
COMMENT ON COLUMN ledger.event.public_id IS 'UUIDv5 of stream, version and ordinal';
COMMENT ON COLUMN ledger.event.version IS 'The version of the stream that the event belongs to';
COMMENT ON COLUMN ledger.event.ordinal IS 'The order of the events of one version';
COMMENT ON COLUMN ledger.event.customer_id IS 'The owner when the event was recorded';
COMMENT ON COLUMN ledger.event.product_id IS 'The product; null: the stream is a customer';
COMMENT ON COLUMN ledger.event.occurred_at IS 'When it happened, by Apple''s clock';
COMMENT ON COLUMN ledger.event.as_of IS 'Apple''s clock of the answer that showed it';
COMMENT ON COLUMN ledger.event.recorded_at IS 'When it was stored, by our clock';
COMMENT ON COLUMN ledger.event.detail IS 'What the kind adds, such as transaction_id; see docs/lifecycle.md';

CREATE TABLE ledger.event_outbox (
    event_id  bigint PRIMARY KEY REFERENCES ledger.event ON DELETE CASCADE
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE ledger.event_outbox IS 'Committed events that have no position yet';

CREATE TABLE ledger.event_feed (
    position  bigint PRIMARY KEY,
    event_id  bigint NOT NULL REFERENCES ledger.event ON DELETE CASCADE,
    CONSTRAINT event_feed_event_unique UNIQUE (event_id),
    CONSTRAINT event_feed_begins_at_one CHECK (position >= 1)
);
COMMENT ON TABLE ledger.event_feed IS
    'The positions of events: gapless from 1 in the order of commits, in which each stream keeps its order';

-- It runs as its owner, so that no other role needs a privilege on the server's control data.
CREATE FUNCTION ledger.feed_place() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cluster text := 'unknown';
BEGIN
    BEGIN
        SELECT c.system_identifier INTO cluster FROM pg_control_system() c;
    EXCEPTION WHEN insufficient_privilege THEN NULL;
    END;
    RETURN format(
        'cluster %s, database %s, table %s', cluster,
        (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()), to_regclass('ledger.feed')::oid);
END
$$;
COMMENT ON FUNCTION ledger.feed_place IS
    'Where the feed is: the cluster, the database in it, and the table, which a restore over the old one makes '
    'anew. A promoted standby is the same place. If the owner has no privilege on the control data, the cluster is '
    'unknown and a restore into another one may pass unnoticed';

-- The id follows from what was restored and where, so that all readers agree on it before it is stored, on a standby
-- too. The position distinguishes backups of one feed.
CREATE FUNCTION ledger.feed_id_elsewhere(feed_id uuid, "position" bigint, place text) RETURNS uuid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT encode(
        set_byte(set_byte(d.digest, 6, get_byte(d.digest, 6) & 15 | 128), 8, get_byte(d.digest, 8) & 63 | 128),
        'hex')::uuid
    FROM (
        SELECT substring(sha256(convert_to(concat_ws(' ', $1, $2, $3), 'UTF8')) FROM 1 FOR 16) AS digest) d
$$;
COMMENT ON FUNCTION ledger.feed_id_elsewhere IS 'The id (UUIDv8) that a feed has at another place than its own';

CREATE TABLE ledger.feed (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    feed_id     uuid NOT NULL DEFAULT gen_random_uuid(),
    place       text NOT NULL,
    position    bigint NOT NULL DEFAULT 0,
    begun_at    timestamptz NOT NULL DEFAULT now(),
    former_id   uuid,
    renewed_at  timestamptz,
    CONSTRAINT feed_position_is_not_negative CHECK (position >= 0)
);
COMMENT ON TABLE ledger.feed IS
    'The identity of the feed, one row. The id belongs to a place: a restored database has another one, and refuses '
    'the cursors of the old one';
COMMENT ON COLUMN ledger.feed.place IS 'Where the id holds (ledger.feed_place)';
COMMENT ON COLUMN ledger.feed.position IS
    'The newest position; it is kept apart from the rows of the feed, so that none repeats';
COMMENT ON COLUMN ledger.feed.begun_at IS 'When its first id began to hold, by our clock';
COMMENT ON COLUMN ledger.feed.former_id IS 'The id before this one; null: it had no other';
COMMENT ON COLUMN ledger.feed.renewed_at IS 'When the id was renewed, by our clock';
INSERT INTO ledger.feed (place) VALUES (ledger.feed_place());

CREATE VIEW ledger.feed_here AS
SELECT CASE WHEN f.place = here.place THEN f.feed_id
            ELSE ledger.feed_id_elsewhere(f.feed_id, f.position, here.place) END AS feed_id,
       f.position,
       CASE WHEN f.place = here.place THEN f.former_id ELSE f.feed_id END AS former_id,
       CASE WHEN f.place = here.place THEN f.renewed_at END AS renewed_at,
       here.place
FROM ledger.feed f CROSS JOIN (SELECT ledger.feed_place() AS place OFFSET 0) here;
COMMENT ON VIEW ledger.feed_here IS 'The feed as it is at this place, also before a renewed id is stored';

-- A program cannot give an event a position without an update of this row, so no event gets one under the id of another
-- place.
CREATE FUNCTION ledger.renew_feed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    here text := ledger.feed_place();
BEGIN
    IF NEW.place <> here THEN
        NEW.feed_id := ledger.feed_id_elsewhere(OLD.feed_id, OLD.position, here);
        NEW.place := here;
        NEW.former_id := OLD.feed_id;
        NEW.renewed_at := clock_timestamp();
        INSERT INTO ledger.audit (action, detail)
        VALUES ('feed.renewed', jsonb_build_object(
            'from', OLD.feed_id, 'to', NEW.feed_id, 'because', 'restored', 'was_at', OLD.place, 'is_at', here));
    END IF;
    IF NEW.feed_id <> OLD.feed_id THEN
        -- Services know the ids of deliveries that were made after the backup, and would ignore others under these.
        PERFORM setval('ledger.delivery_delivery_id_seq', nextval('ledger.delivery_delivery_id_seq') + 1000000);
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION ledger.renew_feed IS
    'Renews the id of a feed that is at another place, and records that in the audit. An update that names this '
    'place itself keeps the id. Where the id changes, the ids of deliveries skip a million';

CREATE TRIGGER renewed_elsewhere BEFORE UPDATE ON ledger.feed FOR EACH ROW EXECUTE FUNCTION ledger.renew_feed();

CREATE TABLE ledger.notification (
    notification_id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id                   int NOT NULL,
    received_at              timestamptz NOT NULL,
    version                  smallint NOT NULL,
    kind                     text NOT NULL,
    subkind                  text,
    apple_id                 text,
    environment              ledger.environment,
    original_transaction_id  text,
    transaction_id           text,
    account_token            text,
    signed_at                timestamptz,
    effect                   text NOT NULL,
    reason                   text,
    check_at                 timestamptz,
    body                     json,
    texts                    bytea,
    claims                   json,
    price_taken              boolean NOT NULL DEFAULT false,
    CONSTRAINT notification_version_known CHECK (version IN (1, 2)),
    CONSTRAINT notification_effect_known CHECK (effect IN (
        'pulled', 'awaited', 'no_subscription', 'unknown', 'ignored', 'wrong_password', 'asked', 'planned', 'unpolled',
        'unshown', 'applied', 'no_facts')),
    CONSTRAINT notification_pulls_to_a_time CHECK (check_at IS NOT NULL OR effect NOT IN ('pulled', 'awaited'))
);
CREATE INDEX notification_received ON ledger.notification (received_at);
CREATE INDEX notification_of_subscription
    ON ledger.notification (app_id, original_transaction_id, environment, received_at);
-- After the index above: of two that cost the same, as in an empty table, PostgreSQL takes the newer one.
ALTER TABLE ledger.notification ADD CONSTRAINT notification_is_kept_once UNIQUE (app_id, apple_id);
CREATE INDEX notification_of_consumption ON ledger.notification (signed_at) WHERE kind = 'CONSUMPTION_REQUEST';
CREATE INDEX notification_of_refund ON ledger.notification (app_id) WHERE kind = 'REFUND';
CREATE INDEX notification_account_token ON ledger.notification (app_id, account_token) WHERE account_token IS NOT NULL;
CREATE INDEX notification_waits ON ledger.notification (app_id, original_transaction_id, environment)
    WHERE effect IN ('asked', 'planned', 'unpolled', 'unshown');
ALTER TABLE ledger.notification ALTER COLUMN texts SET STORAGE EXTERNAL;
COMMENT ON TABLE ledger.notification IS
    'Apple''s notifications: reasons to ask soon. The details in verified ones become part of what answers show';
COMMENT ON COLUMN ledger.notification.version IS 'The version of Apple''s format: 1 or 2';
COMMENT ON COLUMN ledger.notification.kind IS 'Apple''s notification type';
COMMENT ON COLUMN ledger.notification.subkind IS 'Apple''s subtype; version 1 has none';
COMMENT ON COLUMN ledger.notification.apple_id IS
    'notificationUUID of version 2: a repetition has the same; version 1 has none';
COMMENT ON COLUMN ledger.notification.transaction_id IS
    'The transaction that a verified one holds; a CONSUMPTION_REQUEST is answered by it';
COMMENT ON COLUMN ledger.notification.account_token IS
    'The app_account_token in its transaction, in lower case, until it is applied; null: none, or applied';
COMMENT ON COLUMN ledger.notification.signed_at IS 'When Apple signed it; null: it is not verified';
COMMENT ON COLUMN ledger.notification.effect IS
    'Of a verified one: asked: Apple is asked until an answer shows what it states; planned: the planned check shows it; '
    'unpolled: no receipt polls its subject, which is known by notification only; unshown: no answer showed it; applied: its '
    'details are part of the ledger; no_facts: it holds no transaction and no renewal. '
    'pulled: the next check is at check_at or sooner; awaited: a worker asks about the receipt now and will again '
    'by check_at, or the receipt is in quarantine and keeps its pace; no_subscription: the notification names none; '
    'unknown: no receipt polls a subscription of that name; ignored: the notification is about another app; '
    'wrong_password: its password is not the app''s secret';
COMMENT ON COLUMN ledger.notification.reason IS 'Why it counts as unverified';
COMMENT ON COLUMN ledger.notification.body IS 'What an unverified notification says, without any password';
COMMENT ON COLUMN ledger.notification.texts IS
    'The signed texts of a verified notification, each with the number of its chain (ledger.signer_chain); null: removed '
    'when they were old, or with the customer';
COMMENT ON COLUMN ledger.notification.price_taken IS
    'Whether its price is part of the ledger, also where no answer showed what it states';
COMMENT ON COLUMN ledger.notification.claims IS
    'What is kept of the texts once they are removed: their claims without what verifies a device, certificates '
    'and raw receipts';

CREATE FUNCTION ledger.pointer_digest(transaction_id text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT sha256('transaction_id\000\000'::bytea || convert_to(transaction_id, 'UTF8'))
$$;
COMMENT ON FUNCTION ledger.pointer_digest IS
    'The digest of a receipt that is the bare id of a transaction and names no environment';

CREATE VIEW ledger.server_question AS
SELECT n.notification_id, q.receipt_id
FROM ledger.notification n
CROSS JOIN LATERAL (
    SELECT p.purchase_id FROM ledger.purchase p
    WHERE p.app_id = n.app_id AND p.environment = n.environment
      AND p.original_transaction_id = n.original_transaction_id) p
CROSS JOIN LATERAL (
    SELECT l.receipt_id FROM ledger.receipt_purchase l WHERE l.purchase_id = p.purchase_id
    UNION
    SELECT r.receipt_id FROM ledger.receipt r
    WHERE r.app_id = n.app_id
      AND r.digest = ledger.pointer_digest(COALESCE(n.transaction_id, n.original_transaction_id))) a
JOIN ledger.receipt r ON r.receipt_id = a.receipt_id AND r.form <> 'receipt'
JOIN ledger.poll_schedule q ON q.receipt_id = a.receipt_id AND q.follow_ups > 0
WHERE n.effect = 'asked';
COMMENT ON VIEW ledger.server_question IS
    'The receipts by which the Server API is asked until it shows what a notification about a one-time purchase states, also '
    'beside a receipt that polls the purchase: verifyReceipt does not show all of a refund';

CREATE TABLE ledger.support_call (
    request_id      uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    app_id          int NOT NULL REFERENCES ledger.app,
    environment     ledger.environment NOT NULL,
    kind            text NOT NULL,
    subject         text NOT NULL,
    request         jsonb,
    outcome         text NOT NULL DEFAULT 'sent',
    reason          text,
    code            int,
    extended_until  timestamptz,
    attempts        int NOT NULL DEFAULT 1,
    first_asked_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    asked_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    answered_at     timestamptz,
    CONSTRAINT support_call_kind_known CHECK (kind IN ('extend', 'extend_all', 'consumption', 'account_token')),
    CONSTRAINT support_call_outcome_known CHECK (outcome IN ('sent', 'done', 'refused', 'failed', 'withheld')),
    CONSTRAINT support_call_is_answered_once CHECK ((outcome = 'sent') = (answered_at IS NULL))
);
CREATE INDEX support_call_of_subject ON ledger.support_call (app_id, subject, kind, first_asked_at);
CREATE INDEX support_call_asked ON ledger.support_call (asked_at);
COMMENT ON TABLE ledger.support_call IS
    'Support calls that change something at Apple''s, stored before they are made. ledger.audit has who made them, with '
    'the same request_id; both are kept as long';
COMMENT ON COLUMN ledger.support_call.request_id IS
    'The identifier of the request. A repetition has the same; Apple gets it with an extension';
COMMENT ON COLUMN ledger.support_call.kind IS
    'extend: one subscription; extend_all: all subscriptions of a product; consumption; account_token';
COMMENT ON COLUMN ledger.support_call.subject IS
    'What it is about: an original transaction id; of a consumption a transaction id; of extend_all a product';
COMMENT ON COLUMN ledger.support_call.request IS
    'What is asked, in Apple''s words; null: removed with the customer, or nothing was to be sent';
COMMENT ON COLUMN ledger.support_call.outcome IS
    'sent: no answer is known yet; done; refused: Apple did not do it; failed: nothing is known of it; withheld: the '
    'customer did not consent, so nothing was sent';
COMMENT ON COLUMN ledger.support_call.reason IS 'Why it was refused or failed';
COMMENT ON COLUMN ledger.support_call.code IS 'Apple''s error code; null: none';
COMMENT ON COLUMN ledger.support_call.extended_until IS 'When an extended subscription ends now, as Apple said';
COMMENT ON COLUMN ledger.support_call.attempts IS 'How often it was sent';
COMMENT ON COLUMN ledger.support_call.asked_at IS 'When it was sent last';
COMMENT ON COLUMN ledger.support_call.answered_at IS 'When its outcome was stored';

CREATE TABLE ledger.channel_comparison (
    subscription_id  bigint PRIMARY KEY REFERENCES ledger.subscription,
    tried_at         timestamptz NOT NULL,
    compared_at      timestamptz
);
COMMENT ON TABLE ledger.channel_comparison IS 'When the channels were last compared about each subscription';
COMMENT ON COLUMN ledger.channel_comparison.tried_at IS 'When both channels were last asked about it';
COMMENT ON COLUMN ledger.channel_comparison.compared_at IS 'When both gave whole answers; null: never';

CREATE TABLE ledger.channel_difference (
    difference_id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id                   int NOT NULL REFERENCES ledger.app,
    environment              ledger.environment NOT NULL,
    original_transaction_id  text NOT NULL,
    transaction_id           text NOT NULL,
    fact                     text NOT NULL,
    verify_receipt           text,
    server_api               text,
    explanation              text,
    first_seen_at            timestamptz NOT NULL,
    last_seen_at             timestamptz NOT NULL,
    waits_until              timestamptz NOT NULL,
    agreed_at                timestamptz,
    CONSTRAINT channel_difference_differs CHECK (verify_receipt IS DISTINCT FROM server_api)
);
CREATE UNIQUE INDEX channel_difference_open
    ON ledger.channel_difference (app_id, environment, original_transaction_id, transaction_id, fact)
    WHERE agreed_at IS NULL;
COMMENT ON TABLE ledger.channel_difference IS 'Facts that verifyReceipt and the Server API stated differently';
COMMENT ON COLUMN ledger.channel_difference.transaction_id IS 'The period or purchase; empty: the renewal';
COMMENT ON COLUMN ledger.channel_difference.fact IS 'The name of the fact, such as expires_at';
COMMENT ON COLUMN ledger.channel_difference.verify_receipt IS 'What verifyReceipt states; null: nothing';
COMMENT ON COLUMN ledger.channel_difference.server_api IS 'What the Server API states; null: nothing';
COMMENT ON COLUMN ledger.channel_difference.explanation IS
    'Why it is to be expected: finished_consumable, restored or old_receipt; null: it is not';
COMMENT ON COLUMN ledger.channel_difference.first_seen_at IS 'When it was first seen, by our clock';
COMMENT ON COLUMN ledger.channel_difference.last_seen_at IS 'When it was last seen, by our clock';
COMMENT ON COLUMN ledger.channel_difference.waits_until IS
    'Until then it may be that one channel is later than the other, which explains it';
COMMENT ON COLUMN ledger.channel_difference.agreed_at IS 'When both channels stated the same; null: they do not yet';

CREATE TABLE ledger.channel_walk (
    app_id      int PRIMARY KEY REFERENCES ledger.app,
    begun_at    timestamptz NOT NULL,
    receipt_id  bigint DEFAULT 0
);
COMMENT ON TABLE ledger.channel_walk IS
    'How far workers came with asking both channels about every subscription with access, whose next check may be a '
    'month away';
COMMENT ON COLUMN ledger.channel_walk.begun_at IS 'When the walk began';
COMMENT ON COLUMN ledger.channel_walk.receipt_id IS 'The last receipt of the walk so far; null: the walk is over';

CREATE TABLE ledger.incident (
    incident_id    int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id         int NOT NULL REFERENCES ledger.app,
    kind           text NOT NULL,
    opened_at      timestamptz NOT NULL,
    recognised_at  timestamptz NOT NULL,
    last_at        timestamptz,
    closed_at      timestamptz,
    asked          bigint NOT NULL,
    refused        bigint NOT NULL,
    last_reason    text NOT NULL,
    CONSTRAINT incident_kind_known CHECK (kind IN ('refusals', 'clock')),
    CONSTRAINT incident_clocks_are_in_order CHECK (opened_at <= recognised_at AND recognised_at <= closed_at),
    CONSTRAINT incident_refused_were_asked CHECK (0 <= refused AND refused <= asked),
    CONSTRAINT incident_of_a_clock_has_a_last CHECK ((kind = 'clock') = (last_at IS NOT NULL))
);
CREATE UNIQUE INDEX incident_running ON ledger.incident (app_id, kind) WHERE closed_at IS NULL;
COMMENT ON TABLE ledger.incident IS 'Times at which the fault is not the receipts''';
COMMENT ON COLUMN ledger.incident.kind IS
    'refusals: Apple refuses many once-verified receipts of an app at once; clock: answers are dated more than an '
    'hour ahead of the database''s clock';
COMMENT ON COLUMN ledger.incident.opened_at IS
    'When the first receipt was refused, or the first answer not believed';
COMMENT ON COLUMN ledger.incident.recognised_at IS 'When refusals or wrong dates became an incident';
COMMENT ON COLUMN ledger.incident.last_at IS 'Of kind clock: when the last answer came that was not believed';
COMMENT ON COLUMN ledger.incident.asked IS
    'Answers about once-verified receipts since opened_at; a receipt that is refused again counts once';
COMMENT ON COLUMN ledger.incident.refused IS
    'Of kind refusals: once-verified receipts that were refused; of kind clock: answers that were not believed';

CREATE TABLE ledger.verified_minute (
    app_id   int NOT NULL,
    minute   timestamptz NOT NULL,
    backend  int NOT NULL,
    answers  bigint NOT NULL,
    PRIMARY KEY (app_id, minute, backend)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE ledger.verified_minute IS
    'Answers by minute that vouched again for once-verified receipts. Each database connection (backend) counts in '
    'rows of its own, so that settlements never wait for each other''s count';

CREATE TABLE ledger.check_hour (
    app_id    int NOT NULL,
    hour      timestamptz NOT NULL,
    verified  bigint NOT NULL,
    rejected  bigint NOT NULL,
    failed    bigint NOT NULL,
    PRIMARY KEY (app_id, hour)
) WITH (fillfactor = 50);
COMMENT ON TABLE ledger.check_hour IS
    'Apple''s answers by hour. A process adds its own every few seconds, so the last ones of a killed process are '
    'missing';
COMMENT ON COLUMN ledger.check_hour.failed IS 'Checks that brought no usable answer';

CREATE TABLE ledger.verify_turn (
    name       text PRIMARY KEY,
    worker_id  int,
    begun_at   timestamptz NOT NULL DEFAULT '-infinity',
    moved_at   timestamptz NOT NULL DEFAULT '-infinity',
    ended_at   timestamptz
);
COMMENT ON TABLE ledger.verify_turn IS
    'What workers verify by turns: one worker at a time has the turn, and a worker that does not move loses it';
COMMENT ON COLUMN ledger.verify_turn.moved_at IS 'When the worker last reported progress';
COMMENT ON COLUMN ledger.verify_turn.ended_at IS 'When the turn was over; null: it is under way, or never began';
INSERT INTO ledger.verify_turn (name) VALUES ('coverage'), ('everything');

CREATE TABLE ledger.invariant (
    name        text PRIMARY KEY,
    violations  bigint NOT NULL,
    repaired    bigint NOT NULL,
    checked_at  timestamptz NOT NULL,
    CONSTRAINT invariant_counts_what_it_found CHECK (0 <= repaired AND repaired <= violations)
);
COMMENT ON TABLE ledger.invariant IS 'What a worker found when it last verified an invariant everywhere';
COMMENT ON COLUMN ledger.invariant.violations IS 'Found, including those that were repaired at once';

CREATE TABLE ledger.correction (
    correction_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id  bigint REFERENCES ledger.subscription ON DELETE CASCADE,
    purchase_id      bigint REFERENCES ledger.purchase ON DELETE CASCADE,
    version          bigint NOT NULL,
    fact             text NOT NULL,
    stored           text,
    rebuilt          text,
    recorded_at      timestamptz NOT NULL,
    CONSTRAINT correction_of_one_thing CHECK (num_nonnulls(subscription_id, purchase_id) = 1),
    CONSTRAINT correction_changes_something CHECK (stored IS DISTINCT FROM rebuilt)
);
CREATE INDEX correction_of_subscription ON ledger.correction (subscription_id);
CREATE INDEX correction_of_purchase ON ledger.correction (purchase_id);
COMMENT ON TABLE ledger.correction IS
    'What a rebuild corrected: one row per fact that was stored otherwise than the observations say. A correction '
    'is a version of its own without events, because nothing happened at Apple';
COMMENT ON COLUMN ledger.correction.stored IS 'The fact before the correction';
COMMENT ON COLUMN ledger.correction.rebuilt IS 'The fact as the observations say';

CREATE VIEW ledger.unasked AS
SELECT n.app_id, n.environment, n.original_transaction_id
FROM ledger.notification n WHERE n.effect = 'unpolled'
UNION
SELECT a.app_id, thing.environment, thing.original_transaction_id
FROM ledger.app a
CROSS JOIN LATERAL (
    SELECT r.receipt_id, r.environment, r.transaction_id, r.verified_at FROM ledger.receipt r
    WHERE r.app_id = a.app_id AND r.form <> 'receipt' AND r.erased_at IS NULL AND r.rejections = 0 OFFSET 0) r
CROSS JOIN LATERAL (
    SELECT s.environment, s.original_transaction_id
    FROM ledger.receipt_subscription l JOIN ledger.subscription s USING (subscription_id)
    WHERE l.receipt_id = r.receipt_id AND s.version > 0
      AND (s.polled_by IS NULL OR s.polled_by = r.receipt_id AND s.next_check_at IS NOT NULL)
    UNION ALL
    SELECT p.environment, p.original_transaction_id
    FROM ledger.receipt_purchase l JOIN ledger.purchase p USING (purchase_id)
    WHERE l.receipt_id = r.receipt_id AND p.version > 0
      AND (p.polled_by IS NULL OR p.polled_by = r.receipt_id AND p.next_check_at IS NOT NULL)
    UNION ALL
    SELECT r.environment, r.transaction_id
    WHERE r.verified_at IS NULL AND EXISTS (SELECT FROM ledger.poll_schedule q WHERE q.receipt_id = r.receipt_id)) thing
WHERE NOT EXISTS (SELECT FROM ledger.server_key k WHERE k.app_id = a.app_id);
COMMENT ON VIEW ledger.unasked IS
    'Subscriptions and purchases that Apple is not asked about: notifications name them and no receipt polls them, or the app '
    'has no server key and only transactions show them';
