-- The feed's id belongs to the place where it was given: a restored database has another one. And the lag of imports.

-- Where the feed is: the cluster, the database in it, and the table, which a restore over the old one makes anew. A promoted
-- standby is the same place. Runs as its owner, so that no other role needs a right on the server's control data; where the
-- owner has none either, a restore into another cluster may go unnoticed.
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

-- The id (UUIDv8) that a feed has at another place than its own. It follows from what was restored and where, so that all who read
-- agree on it before it is written down, on a standby too; the position tells backups of one feed apart.
CREATE FUNCTION ledger.feed_id_elsewhere(feed_id uuid, "position" bigint, place text) RETURNS uuid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT encode(
        set_byte(set_byte(d.digest, 6, get_byte(d.digest, 6) & 15 | 128), 8, get_byte(d.digest, 8) & 63 | 128), 'hex')::uuid
    FROM (
        SELECT substring(sha256(convert_to(concat_ws(' ', $1, $2, $3), 'UTF8')) FROM 1 FOR 16) AS digest) d
$$;

ALTER TABLE ledger.feed ADD COLUMN place text, ADD COLUMN former_id uuid, ADD COLUMN renewed_at timestamptz;
UPDATE ledger.feed SET place = ledger.feed_place();
ALTER TABLE ledger.feed ALTER COLUMN place SET NOT NULL;
COMMENT ON COLUMN ledger.feed.place IS 'Where the id holds (ledger.feed_place)';
COMMENT ON COLUMN ledger.feed.former_id IS 'The id before this one; null: it had no other';

-- The feed as it is here; place is where that is.
CREATE VIEW ledger.feed_here AS
SELECT CASE WHEN f.place = here.place THEN f.feed_id
            ELSE ledger.feed_id_elsewhere(f.feed_id, f.position, here.place) END AS feed_id,
       f.position,
       CASE WHEN f.place = here.place THEN f.former_id ELSE f.feed_id END AS former_id,
       CASE WHEN f.place = here.place THEN f.renewed_at END AS renewed_at,
       here.place
FROM ledger.feed f CROSS JOIN (SELECT ledger.feed_place() AS place OFFSET 0) here;

CREATE OR REPLACE VIEW perennial.feed_now AS
SELECT f.feed_id, f.position,
       (SELECT count(*) FROM ledger.event_outbox) AS unsequenced,
       (SELECT min(e.recorded_at) FROM ledger.event_outbox o JOIN ledger.event e USING (event_id)) AS unsequenced_since
FROM ledger.feed_here f;

-- What the database does by itself has no actor.
ALTER TABLE ledger.audit
    DROP CONSTRAINT audit_names_one_actor,
    ADD CONSTRAINT audit_names_one_actor
        CHECK (num_nonnulls(key_id, os_user) = 1 OR action = 'feed.renewed' AND num_nonnulls(key_id, os_user) = 0);
CREATE OR REPLACE VIEW perennial.audit_log AS
SELECT t.audit_id, t.happened_at, COALESCE('key ' || t.key_id, 'user ' || t.os_user, 'perennial') AS actor, t.action,
       a.bundle_id, c.name AS customer, t.receipt_id, t.detail,
       CASE WHEN t.decided_about IS NOT NULL THEN
           ARRAY(SELECT d.name FROM ledger.customer d WHERE d.customer_id = ANY(t.decided_about) ORDER BY d.name)
       END AS decided_about
FROM ledger.audit t
LEFT JOIN ledger.app a ON a.app_id = t.app_id
LEFT JOIN ledger.customer c ON c.customer_id = t.customer_id;
COMMENT ON COLUMN perennial.audit_log.actor IS 'An API key by its number, a user of the operating system, or perennial itself';

-- No program gives an event a position without changing this row: so none gets one under the id of another place. An update
-- that names this place itself keeps the id.
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

-- Imported receipts stand in the order of their expiry; which of them has waited longest is found at once.
CREATE INDEX poll_schedule_imported ON ledger.poll_schedule (app_id, scheduled_for) WHERE lane = 3;
