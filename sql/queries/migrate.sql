-- Migrations, roles and the examination of a database.

-- name: lock_migrations
-- Locks migrations, so that one runs at a time, and creates the table that records them.
SELECT pg_advisory_xact_lock(hashtext('perennial.migrate'));
CREATE SCHEMA IF NOT EXISTS ledger;
CREATE TABLE IF NOT EXISTS ledger.migration (
    number      int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    digest      bytea NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
);

-- name: read_migrations
-- Returns the migrations of this database, in order.
SELECT name, digest FROM ledger.migration ORDER BY number

-- name: read_compatibility
-- Returns how many migrations a program must know, at least, to work with this database.
SELECT program_min FROM ledger.compatibility

-- name: record_migration
-- Records that migration $1 with digest $2 was applied.
INSERT INTO ledger.migration (name, digest) VALUES ($1::text, $2::bytea)

-- name: is_migrated
-- Returns whether this database was ever migrated.
SELECT to_regclass('ledger.migration') IS NOT NULL AS migrated

-- name: add_observation_months
-- Creates the partitions for the observations of this month and the next.
SELECT ledger.add_observation_month(now() + m * interval '1 month')::text FROM generate_series(0, 1) m

-- name: create_roles
-- Creates the roles that do not exist yet; managed databases where this is not allowed use `migrate --no-roles`. Roles
-- belong to the whole cluster, so another database's migration may create one at the same moment.
DO $$
DECLARE role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['perennial_owner', 'perennial_worker', 'perennial_api', 'perennial_report'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
END $$;

-- name: grant_roles
-- Grants each role its privileges. owner: all data. worker and api: what a check and an upload write, but no app,
-- secret, catalog or key. api, which runs workers too: whatever worker may, and also sessions, manual grants, support
-- calls and merges; only api reads API keys and offer keys. report: only the schema perennial.
-- worker and api may insert and close bitemporal rows but never change them, and may only insert events.
GRANT USAGE ON SCHEMA perennial TO perennial_report, perennial_api, perennial_worker, perennial_owner;
GRANT SELECT ON ALL TABLES IN SCHEMA perennial TO perennial_report, perennial_api, perennial_worker, perennial_owner;
-- The functions that reports rest on are in ledger; report reads no table there.
GRANT USAGE ON SCHEMA ledger TO perennial_report, perennial_worker, perennial_api, perennial_owner;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ledger TO perennial_owner;
GRANT SELECT ON ALL TABLES IN SCHEMA ledger TO perennial_worker, perennial_api;
GRANT INSERT, UPDATE ON
    ledger.customer, ledger.receipt, ledger.upload, ledger.poll_schedule, ledger.subscription, ledger.receipt_subscription,
    ledger.period, ledger.period_history, ledger.transaction_alias, ledger.purchase, ledger.purchase_history,
    ledger.observation, ledger.event_outbox, ledger.worker, ledger.app_budget, ledger.import, ledger.provisional,
    ledger.receipt_purchase, ledger.incident, ledger.refusal, ledger.verified_minute, ledger.apple_breaker,
    ledger.check_hour, ledger.summary_share, ledger.summary_day, ledger.summary_progress,
    ledger.summarised, ledger.summary_paying, ledger.summary_revenue, ledger.summary_renewal, ledger.summary_trial,
    ledger.verify_turn, ledger.invariant, ledger.current_entitlements, ledger.purchase_order, ledger.order_request,
    ledger.order_receipt, ledger.delivery, ledger.due_delivery, ledger.delivery_queue, ledger.delivery_release,
    ledger.call_budget, ledger.signer_chain, ledger.channel_comparison, ledger.channel_difference, ledger.channel_walk,
    ledger.secret_trial, ledger.refused_bundle, ledger.webhook_line, ledger.unread_claim
    TO perennial_worker, perennial_api;
-- A role that can open sessions could act as any administrator.
REVOKE ALL ON ledger.admin_session, ledger.api_key FROM perennial_worker;
GRANT INSERT, UPDATE, DELETE ON ledger.admin_session TO perennial_api;
-- A worker signs nothing; it reads the names of keys with the other settings of apps.
REVOKE ALL ON ledger.offer_key FROM perennial_worker;
GRANT SELECT (app_id, key_id, issuer_id) ON ledger.offer_key TO perennial_worker;
REVOKE UPDATE ON ledger.subscription_span, ledger.ownership, ledger.event, ledger.event_feed
    FROM perennial_worker, perennial_api;
GRANT INSERT, UPDATE (known) ON ledger.subscription_span, ledger.ownership TO perennial_worker, perennial_api;
GRANT INSERT, UPDATE (known) ON ledger.manual_grant TO perennial_api;
GRANT INSERT, UPDATE ON ledger.grant_request, ledger.support_call TO perennial_api;
GRANT UPDATE ON ledger.webhook TO perennial_worker;
GRANT UPDATE (taken_up) ON ledger.server_key TO perennial_worker, perennial_api;
GRANT INSERT, UPDATE, DELETE ON ledger.webhook TO perennial_api;
-- The pages merge customers.
GRANT INSERT, UPDATE (applies) ON ledger.customer_merge TO perennial_api;
GRANT DELETE ON ledger.upload TO perennial_api;
GRANT UPDATE (customer_id) ON ledger.stated_price TO perennial_api;
GRANT INSERT ON ledger.event, ledger.event_feed TO perennial_worker, perennial_api;
GRANT UPDATE (position) ON ledger.feed TO perennial_worker, perennial_api;
GRANT INSERT ON ledger.audit, ledger.acknowledgement TO perennial_worker, perennial_api;
GRANT DELETE ON
    ledger.poll_schedule, ledger.period, ledger.event_outbox, ledger.worker, ledger.refusal, ledger.verified_minute,
    ledger.check_hour, ledger.summary_share, ledger.summary_paying, ledger.summary_revenue, ledger.summary_renewal,
    ledger.summary_trial, ledger.order_request, ledger.grant_request, ledger.delivery_release, ledger.due_delivery,
    ledger.webhook_line, ledger.unread_claim
    TO perennial_worker, perennial_api;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ledger TO perennial_worker, perennial_api, perennial_owner;
-- Some databases are set up so that PUBLIC may execute no new function.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA perennial, ledger
    TO perennial_report, perennial_worker, perennial_api, perennial_owner;
REVOKE EXECUTE ON FUNCTION ledger.add_observation_month(timestamptz) FROM PUBLIC, perennial_report;
REVOKE EXECUTE ON FUNCTION
    ledger.drop_empty_observation_months(timestamptz), perennial.set_price, perennial.set_small_business,
    perennial.forget_notifications FROM PUBLIC, perennial_report, perennial_worker, perennial_api;
REVOKE EXECUTE ON FUNCTION perennial.keep_feed_id
    FROM PUBLIC, perennial_report, perennial_worker, perennial_api, perennial_owner;
GRANT INSERT, UPDATE, DELETE ON ledger.notification TO perennial_worker, perennial_api;

-- name: examine_database
-- Doctor and migrate: returns what must be known of the database before the first start: its version and encoding, the
-- extension btree_gist, the clock, and whether it is a standby.
SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS version_text,
       current_setting('server_encoding') AS encoding,
       (SELECT e.extversion FROM pg_extension e WHERE e.extname = 'btree_gist') AS gist_installed,
       (SELECT e.default_version FROM pg_available_extensions e WHERE e.name = 'btree_gist') AS gist_available,
       clock_timestamp() AS clock, pg_is_in_recovery() AS is_standby, current_user::text AS account,
       has_database_privilege(current_database(), 'CREATE') AS may_create

-- name: examine_rights
-- Doctor: returns each role that the script $1 (grant_roles) names, whether this account is its member, and what the
-- account lacks of what the script grants to the role and does not revoke again.
WITH line AS (
    SELECT s.number, m[1] = 'GRANT' AS is_grant, m[2] AS privileges, rtrim(m[3]) AS kind, m[4] AS things, m[5] AS roles
    FROM unnest(string_to_array(
        regexp_replace(regexp_replace($1::text, '--[^\n]*', '', 'g'), '\s+', ' ', 'g'), ';'))
        WITH ORDINALITY s (text, number)
    CROSS JOIN regexp_match(
        s.text, '(GRANT|REVOKE) (.+) ON ((?:ALL [A-Z]+ IN )?SCHEMA |FUNCTION |)(.+) (?:TO|FROM) (.+)') m
), thing AS (
    -- What there is, by the two ways in which a statement names it.
    SELECT o.oid, o.type, o.name, w.kind, w.key
    FROM pg_namespace n
    CROSS JOIN LATERAL (
        SELECT n.oid, 'SCHEMA' AS type, n.nspname::text AS name
        UNION ALL
        -- Partitions are read and written through their table.
        SELECT c.oid, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, n.nspname || '.' || c.relname
        FROM pg_class c
        WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'S') AND NOT c.relispartition
        UNION ALL
        SELECT f.oid, 'FUNCTION', n.nspname || '.' || f.proname FROM pg_proc f WHERE f.pronamespace = n.oid) o
    CROSS JOIN LATERAL (VALUES
        ('ALL ' || o.type || 'S IN SCHEMA', n.nspname::text),
        (CASE WHEN o.type IN ('SCHEMA', 'FUNCTION') THEN o.type ELSE '' END, o.name)) w (kind, key)
    WHERE n.nspname IN ('ledger', 'perennial')
), given AS (
    SELECT l.number, l.is_grant, r.role, t.oid, t.type, t.name, p.parts[1] AS privilege, c.col
    FROM line l
    CROSS JOIN unnest(string_to_array(l.roles, ', ')) r (role)
    CROSS JOIN unnest(string_to_array(l.things, ', ')) k (key)
    JOIN thing t ON t.kind = l.kind AND t.key = split_part(k.key, '(', 1)
    CROSS JOIN regexp_matches(l.privileges, '([A-Z]+)(?: \((.+?)\))?', 'g') p (parts)
    LEFT JOIN unnest(string_to_array(p.parts[2], ', ')) c (col) ON true
), needed AS (
    SELECT DISTINCT g.role, g.oid, g.type, g.privilege, g.col,
           lower(g.privilege) || COALESCE(' (' || g.col || ')', '')
           || CASE g.type WHEN 'SCHEMA' THEN ' on schema ' ELSE ' on ' END || g.name AS text
    FROM given g
    WHERE g.is_grant AND NOT EXISTS (
        SELECT FROM given l
        WHERE NOT l.is_grant AND l.number > g.number AND l.role = g.role AND l.oid = g.oid AND l.type = g.type
          AND l.privilege IN (g.privilege, 'ALL'))
)
SELECT n.role,
       EXISTS (SELECT FROM pg_roles r WHERE r.rolname = n.role AND pg_has_role(r.oid, 'MEMBER')) AS is_member,
       COALESCE(array_agg(n.text ORDER BY n.type = 'SCHEMA' DESC, n.text) FILTER (WHERE NOT CASE
           WHEN n.type = 'SCHEMA' THEN has_schema_privilege(n.oid, n.privilege)
           WHEN n.type = 'FUNCTION' THEN has_function_privilege(n.oid, n.privilege)
           WHEN n.type = 'SEQUENCE' THEN has_sequence_privilege(n.oid, n.privilege)
           WHEN n.col IS NULL THEN has_table_privilege(n.oid, n.privilege)
           ELSE has_column_privilege(
               n.oid, (SELECT a.attnum FROM pg_attribute a WHERE a.attrelid = n.oid AND a.attname = n.col),
               n.privilege) END), '{}') AS lacking
FROM needed n GROUP BY n.role ORDER BY n.role

-- name: read_sealed_secrets
-- Doctor: returns every sealed secret of apps but offer keys, and the newest one of orders, with what it is. A previous
-- shared secret that does not open counts as none.
SELECT s.kind, a.bundle_id, s.order_id, s.sealed
FROM ledger.app a
CROSS JOIN LATERAL (
    SELECT 'shared' AS kind, NULL::text AS order_id, a.sealed_secret AS sealed
    UNION ALL
    SELECT 'server_key', NULL, k.sealed_key FROM ledger.server_key k WHERE k.app_id = a.app_id
    UNION ALL
    (SELECT 'order', o.order_id::text, o.sealed_key FROM ledger.purchase_order o
     WHERE o.app_id = a.app_id AND o.sealed_key IS NOT NULL
     ORDER BY o.created_at DESC LIMIT 1)) s
WHERE a.removed_at IS NULL AND s.sealed IS NOT NULL
ORDER BY a.bundle_id, s.kind

-- name: may_read_offer_keys
-- Doctor: returns whether this account may read offer keys; a worker may not.
SELECT has_column_privilege('ledger.offer_key', 'sealed_key', 'SELECT') AS may

-- name: read_sealed_offer_keys
-- Doctor: returns every sealed offer key of apps, as read_sealed_secrets does.
SELECT 'offer_key' AS kind, a.bundle_id, NULL::text AS order_id, k.sealed_key AS sealed
FROM ledger.app a JOIN ledger.offer_key k USING (app_id)
WHERE a.removed_at IS NULL
ORDER BY a.bundle_id
