import Postgres

/// What became of every claim, written down by the database itself while a test runs.
struct ClaimJournal {
    /// How a claim ended.
    enum End: String, CaseIterable {
        /// What came of the call was settled.
        case settled
        /// A worker that stopped gave it up without an answer.
        case handedBack = "handed back"
        /// Its lease ran out before it ended.
        case leaseOver = "lease over"
        /// Still going on.
        case open
    }

    /// How many claims ended how.
    let ends: [End: Int]
    /// Claims that came after a settlement although the next check was not due yet.
    let tooEarly: Int
    /// Claims that came after a settlement, when the next check was due.
    let dueAgain: Int
    /// How long the claim was held that was handed back soonest, in seconds; nil when none was.
    let handedBackAfterSeconds: Double?

    /// How many claims ended so.
    subscript(end: End) -> Int { ends[end, default: 0] }

    /// Makes the database keep a journal from now on.
    static func begin(in world: PretendWorld) async throws {
        try await world.run(
            """
            CREATE TABLE public.claim_journal (
                lease_token bigint PRIMARY KEY, receipt_id bigint NOT NULL, claimed_at timestamptz NOT NULL,
                ended_by text NOT NULL DEFAULT 'open', ended_at timestamptz, next_due_at timestamptz);
            CREATE FUNCTION public.keep_claim_journal() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF TG_OP <> 'INSERT' THEN
                    UPDATE public.claim_journal j
                    SET ended_at = clock_timestamp(), next_due_at = CASE WHEN TG_OP = 'UPDATE' THEN NEW.due_at END,
                        ended_by = CASE
                            WHEN TG_OP = 'DELETE' THEN 'settled'
                            WHEN NEW.lease_token <> OLD.lease_token THEN 'lease over'
                            WHEN NEW.due_at <= clock_timestamp() THEN 'handed back'
                            ELSE 'settled' END
                    WHERE j.lease_token = OLD.lease_token AND j.ended_by = 'open'
                      AND (TG_OP = 'DELETE' OR NEW.leased_by IS NULL OR NEW.lease_token <> OLD.lease_token);
                END IF;
                IF TG_OP <> 'DELETE' THEN
                    INSERT INTO public.claim_journal (lease_token, receipt_id, claimed_at)
                    SELECT NEW.lease_token, NEW.receipt_id, clock_timestamp() WHERE NEW.leased_by IS NOT NULL
                    ON CONFLICT DO NOTHING;
                END IF;
                RETURN NULL;
            END $$;
            CREATE TRIGGER keep_claim_journal AFTER INSERT OR UPDATE OR DELETE ON ledger.poll_schedule
                FOR EACH ROW EXECUTE FUNCTION public.keep_claim_journal();
            """)
    }

    /// Reads the journal of a database.
    init(of world: PretendWorld) async throws {
        let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
        let counts = try await database.query(
            Statement(
                name: "journal_ends",
                sql: """
                    SELECT ended_by, count(*) AS claims,
                           min(EXTRACT(epoch FROM ended_at - claimed_at))::float8 AS held_seconds_min
                    FROM public.claim_journal GROUP BY ended_by
                    """))
        let again = try await database.query(
            Statement(
                name: "journal_again",
                sql: """
                    SELECT count(*) FILTER (WHERE claimed_at < before_due_at) AS too_early,
                           count(*) FILTER (WHERE claimed_at >= before_due_at) AS due_again
                    FROM (SELECT claimed_at, lag(ended_by) OVER line AS before,
                                 COALESCE(lag(next_due_at) OVER line, 'infinity') AS before_due_at
                          FROM public.claim_journal WINDOW line AS (PARTITION BY receipt_id ORDER BY lease_token)) c
                    WHERE before = 'settled'
                    """))
        await database.close()
        ends = try Dictionary(
            uniqueKeysWithValues: counts.map { row in
                let word = try row.text("ended_by")
                guard let end = End(rawValue: word) else { throw UnknownEnd(word: word) }
                return (end, Int(try row.int8("claims")))
            })
        handedBackAfterSeconds = try counts.first { try $0.text("ended_by") == End.handedBack.rawValue }?
            .float8("held_seconds_min")
        tooEarly = Int(try again.first?.int8("too_early") ?? 0)
        dueAgain = Int(try again.first?.int8("due_again") ?? 0)
    }

    private struct UnknownEnd: Error {
        let word: String
    }
}
