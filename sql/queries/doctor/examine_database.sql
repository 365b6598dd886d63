-- Doctor: returns what must be known of the database before the first start: its version, the extension btree_gist, the
-- clock, whether it is a standby, and what of the roles' rights this account lacks, by role.
WITH needed AS (
    SELECT held.grantee::regrole::text AS role, c.oid::regclass AS thing, held.privilege_type AS privilege
    FROM pg_class c
    CROSS JOIN LATERAL aclexplode(c.relacl) held
    WHERE c.relnamespace = to_regnamespace('ledger') AND c.relkind IN ('r', 'p', 'v', 'm')
      AND held.grantee::regrole::text IN ('perennial_owner', 'perennial_worker', 'perennial_api')
), lacking AS (
    SELECT n.role, min(format('%s on %s', lower(n.privilege), n.thing)) AS first
    FROM needed n
    WHERE NOT has_table_privilege(n.thing, n.privilege)
    GROUP BY n.role
)
SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS version_text,
       (SELECT e.extversion FROM pg_extension e WHERE e.extname = 'btree_gist') AS gist_installed,
       (SELECT e.default_version FROM pg_available_extensions e WHERE e.name = 'btree_gist') AS gist_available,
       clock_timestamp() AS clock, pg_is_in_recovery() AS is_standby, current_user::text AS account,
       has_database_privilege(current_database(), 'CREATE') AS may_create,
       ARRAY(SELECT DISTINCT n.role FROM needed n ORDER BY 1) AS roles,
       ARRAY(SELECT l.role FROM lacking l ORDER BY 1) AS lacking_roles,
       ARRAY(SELECT l.first FROM lacking l ORDER BY l.role) AS lacking
