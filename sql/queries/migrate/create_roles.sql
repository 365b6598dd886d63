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
