import Postgres

/// A copy of every row of a ledger and of the state of its sequences, in the same database, to be put back.
///
/// A test that changes rows of everything needs no database of its own if it puts them back: that takes less time than
/// to make and to fill another one.
package struct KeptRows: Sendable {
    /// A session that fires no triggers. It is one of its own, because a session that changes its role for that forgets
    /// the plans of all its statements.
    private let session: Database

    /// Keeps what the ledger holds now.
    package init(in connectionString: String) async throws {
        session = Database(
            DatabaseConfiguration(
                connectionString: connectionString + " options='-c session_replication_role=replica'",
                writeConnections: 1)
        ) { print("kept rows: \($0)") }
        try await session.transaction { try $0.script(Self.keep) }
    }

    /// Makes the rows and the sequences what they were when they were kept, and returns whether the structure is what it
    /// was then, and what deleted rows left behind is little. Nothing else may use the ledger meanwhile.
    @discardableResult
    package func putBack() async throws -> Bool {
        try await session.write(Statement(name: "put_rows_back", sql: "SELECT kept.put_rows_back() AS is_whole"))
            .first?.bool("is_whole") ?? false
    }

    /// The function that puts back has each statement as its text, so that a session plans it once. Tables are not
    /// truncated: that would discard the plans of every open session, and takes longer for a few rows.
    private static let keep = """
        CREATE SCHEMA kept;
        CREATE TABLE kept."the changes" (tag text);
        CREATE FUNCTION kept."note a change"() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $note$
        BEGIN
            INSERT INTO kept."the changes" VALUES (tg_tag);
        END $note$;
        DO $keep$
        DECLARE
            name text;
            statements text;
        BEGIN
            FOR name IN
                SELECT c.relname FROM pg_class c
                WHERE c.relnamespace = 'ledger'::regnamespace AND NOT c.relispartition
                  AND (c.relkind = 'p' OR c.relkind = 'r' AND pg_relation_size(c.oid) > 0)
            LOOP
                EXECUTE format('CREATE TABLE kept.%1$I AS TABLE ledger.%1$I', name);
            END LOOP;
            CREATE TABLE kept."the sequences" AS
            SELECT format('ledger.%I', sequencename)::regclass AS name, start_value, last_value
            FROM pg_sequences WHERE schemaname = 'ledger';

            SELECT string_agg(format('DELETE FROM ledger.%I;', c.relname), E'\\n') INTO statements
            FROM pg_class c
            WHERE c.relnamespace = 'ledger'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition;
            SELECT statements || string_agg(
                format(
                    E'\\nINSERT INTO ledger.%1$I (%2$s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM kept.%1$I;',
                    k.relname, k.columns),
                '') INTO statements
            FROM (
                SELECT k.relname, string_agg(quote_ident(o.attname), ', ' ORDER BY o.attnum) AS columns
                FROM pg_class k
                JOIN pg_class c ON c.relnamespace = 'ledger'::regnamespace AND c.relname = k.relname
                JOIN pg_attribute o ON o.attrelid = c.oid AND o.attnum > 0 AND o.attgenerated = '' AND NOT o.attisdropped
                WHERE k.relnamespace = 'kept'::regnamespace AND pg_relation_size(k.oid) > 0
                GROUP BY k.relname
            ) k;
            EXECUTE format(
                $create$
                CREATE FUNCTION kept.put_rows_back() RETURNS bool LANGUAGE plpgsql AS $put$
                BEGIN
                    %s
                    PERFORM setval(s.name, COALESCE(s.last_value, s.start_value), s.last_value IS NOT NULL)
                    FROM kept."the sequences" s;
                    RETURN NOT EXISTS (SELECT FROM kept."the changes") AND (
                        SELECT sum(pg_relation_size(c.oid)) < 12 * 1024 * 1024 FROM pg_class c
                        WHERE c.relnamespace = 'ledger'::regnamespace
                    );
                END $put$
                $create$, statements);
        END $keep$;
        CREATE EVENT TRIGGER "note a change" ON ddl_command_end EXECUTE FUNCTION kept."note a change"();
        """
}
