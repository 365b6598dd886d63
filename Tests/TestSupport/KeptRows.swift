import Postgres

/// A test that changes rows of everything needs no database of its own if it puts them back: that takes less time than
/// to make and to fill another one.
extension Database {
    /// Keeps a copy of every row of the ledger and the state of its sequences, in the same database, to be put back.
    package func keepRows() async throws {
        try await transaction {
            try $0.script(
                """
                CREATE SCHEMA kept;
                DO $$
                DECLARE
                    name text;
                BEGIN
                    FOR name IN
                        SELECT c.relname FROM pg_class c
                        WHERE c.relnamespace = 'ledger'::regnamespace AND NOT c.relispartition
                          AND (c.relkind = 'p' OR c.relkind = 'r' AND pg_relation_size(c.oid) > 0)
                    LOOP
                        EXECUTE format('CREATE TABLE kept.%1$I AS TABLE ledger.%1$I', name);
                    END LOOP;
                END $$;
                CREATE TABLE kept."the sequences" AS
                SELECT format('ledger.%I', sequencename)::regclass AS name, start_value, last_value
                FROM pg_sequences WHERE schemaname = 'ledger';
                """)
        }
    }

    /// Makes the rows and the sequences what they were when they were kept. No trigger sees it, and what was done to the
    /// structure stays. Nothing else may use the ledger meanwhile.
    ///
    /// Tables are not truncated: that would discard the plans of every open session, and takes longer for a few rows.
    package func putRowsBack() async throws {
        try await transaction {
            try $0.script(
                """
                SET LOCAL session_replication_role = replica;
                SET LOCAL client_min_messages = warning;
                DO $$
                DECLARE
                    name text;
                    columns text;
                BEGIN
                    FOR name IN
                        SELECT c.relname FROM pg_class c
                        WHERE c.relnamespace = 'ledger'::regnamespace AND c.relkind = 'r'
                          AND pg_relation_size(c.oid) > 0
                    LOOP
                        EXECUTE format('DELETE FROM ledger.%I', name);
                    END LOOP;
                    FOR name, columns IN
                        SELECT c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
                        FROM pg_class c
                        JOIN pg_class k ON k.relnamespace = 'kept'::regnamespace AND k.relname = c.relname
                            AND pg_relation_size(k.oid) > 0
                        JOIN pg_attribute a ON a.attrelid = k.oid AND a.attnum > 0
                        JOIN pg_attribute o ON o.attrelid = c.oid AND o.attname = a.attname AND o.attgenerated = ''
                        WHERE c.relnamespace = 'ledger'::regnamespace
                        GROUP BY c.relname
                    LOOP
                        EXECUTE format(
                            'INSERT INTO ledger.%1$I (%2$s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM kept.%1$I',
                            name, columns);
                    END LOOP;
                    PERFORM setval(s.name, COALESCE(s.last_value, s.start_value), s.last_value IS NOT NULL)
                    FROM kept."the sequences" s;
                END $$;
                """)
        }
    }
}
