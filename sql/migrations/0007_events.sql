-- Every change as an event, and the feed that gives committed events gapless positions.
CREATE TABLE ledger.event (
    event_id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id        uuid NOT NULL,
    app_id           int NOT NULL REFERENCES ledger.app,
    environment      ledger.environment NOT NULL,
    subscription_id  bigint REFERENCES ledger.subscription ON DELETE CASCADE,
    purchase_id      bigint REFERENCES ledger.purchase ON DELETE CASCADE,
    version          bigint NOT NULL,
    ordinal          smallint NOT NULL,
    kind             ledger.event_kind NOT NULL,
    customer_id      bigint REFERENCES ledger.customer,
    product_id       text NOT NULL,
    occurred_at      timestamptz NOT NULL,
    as_of            timestamptz NOT NULL,
    recorded_at      timestamptz NOT NULL,
    detail           jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT event_public_id_unique UNIQUE (public_id),
    CONSTRAINT event_of_one_stream CHECK (num_nonnulls(subscription_id, purchase_id) = 1),
    CONSTRAINT event_of_subscription_unique UNIQUE (subscription_id, version, ordinal),
    CONSTRAINT event_of_purchase_unique UNIQUE (purchase_id, version, ordinal),
    CONSTRAINT event_is_not_from_the_future CHECK (occurred_at <= as_of)
);
-- perennial.subscription_event compares kinds as text: without this the planner takes each to be rare.
CREATE STATISTICS ledger.event_kind ON (kind::text) FROM ledger.event;
COMMENT ON TABLE ledger.event IS
    'Changes of a stream, which is a subscription or a one-time purchase: written with the change, once, and never '
    'changed';
COMMENT ON COLUMN ledger.event.public_id IS 'UUIDv5 of stream, version and ordinal';
COMMENT ON COLUMN ledger.event.version IS 'The version of the stream that the event belongs to';
COMMENT ON COLUMN ledger.event.ordinal IS 'The order of the events of one version';
COMMENT ON COLUMN ledger.event.customer_id IS 'The owner when the event was recorded';
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
    former_id   uuid,
    renewed_at  timestamptz,
    CONSTRAINT feed_position_is_not_negative CHECK (position >= 0)
);
INSERT INTO ledger.feed (place) VALUES (ledger.feed_place());
COMMENT ON TABLE ledger.feed IS
    'The identity of the feed, one row. The id belongs to a place: a restored database has another one, and refuses '
    'the cursors of the old one';
COMMENT ON COLUMN ledger.feed.place IS 'Where the id holds (ledger.feed_place)';
COMMENT ON COLUMN ledger.feed.position IS
    'The newest position; it is kept apart from the rows of the feed, so that none repeats';
COMMENT ON COLUMN ledger.feed.former_id IS 'The id before this one; null: it had no other';
COMMENT ON COLUMN ledger.feed.renewed_at IS 'When the id was renewed, by our clock';

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
    IF NEW.place = here THEN RETURN NEW; END IF;
    NEW.feed_id := ledger.feed_id_elsewhere(OLD.feed_id, OLD.position, here);
    NEW.place := here;
    NEW.former_id := OLD.feed_id;
    NEW.renewed_at := clock_timestamp();
    INSERT INTO ledger.audit (action, detail)
    VALUES ('feed.renewed', jsonb_build_object(
        'from', OLD.feed_id, 'to', NEW.feed_id, 'because', 'restored', 'was_at', OLD.place, 'is_at', here));
    RETURN NEW;
END
$$;
CREATE TRIGGER renewed_elsewhere BEFORE UPDATE ON ledger.feed FOR EACH ROW EXECUTE FUNCTION ledger.renew_feed();
COMMENT ON FUNCTION ledger.renew_feed IS
    'Renews the id of a feed that is at another place, and records that in the audit. An update that names this '
    'place itself keeps the id';
