import Postgres
import ServiceLifecycle
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("The log names each problem once, and is silent otherwise")
struct TroubleLogTests {
    /// Apple vouches for a subscription. Always the same, for a second later Apple would say something else.
    private static let vouched = Sample.verified()
        .replacing(#""latest_receipt_info":["#, with: #""latest_receipt":"AAAA","latest_receipt_info":["#)
    /// The same, with a row beside it that cannot be read.
    private static let odd = vouched.replacing(
        #""latest_receipt_info":["#, with: #""latest_receipt_info":[{"product_id":7},"#)

    private static func status(_ number: Int) -> String { #"{"status":\#(number)}"# }

    /// A ledger with one receipt, a line to a scripted App Store, and its log.
    private struct World: Sendable {
        let served: ServedLedger
        let store = ScriptedStore()
        let journal = Journal()
        let tracker: Tracker
        let receipt: ReceiptID

        init(_ served: ServedLedger) async throws {
            self.served = served
            tracker = Tracker(
                ledger: served.ledger, appStore: store.client, options: TrackerOptions(), logger: journal.logger)
            let app = try await served.ledger.apps.app(ServedLedger.app)
            let upload = Upload(appID: app.id, customer: "kim", receipt: Array("receipt".utf8), imported: true)
            receipt = try #require(try await served.ledger.intake.store([upload]).first).receiptID
        }

        /// Asks so many times, whatever is paused, and hears the same.
        func ask(_ body: String?, previousSecret: Bool = false, times: Int = 3) async throws {
            store.say(body, usedPreviousSecret: previousSecret)
            for _ in 0..<times {
                try await served.run("UPDATE ledger.app_budget SET paused_until = '-infinity'")
                _ = try await tracker.check(receipt)
            }
        }

        /// The beginnings of the lines above debug, up to the first comma, colon or semicolon.
        var reported: [String] {
            journal.lines.filter { !$0.hasPrefix("debug") && !$0.hasPrefix("trace") }.map { line in
                String(line.prefix { !",:;[".contains($0) }).trimmingSuffix(" ")
            }
        }

        static func with(_ body: @escaping @Sendable (World) async throws -> Void) async throws {
            try await ServedLedger.with { served in try await body(try await World(served)) }
        }
    }

    @Test("Nothing is logged while all is well")
    func silence() async throws {
        try await World.with { world in
            try await world.ask(Self.vouched, times: 5)
            await world.tracker.seeStandings()
            #expect(world.reported == [])
        }
    }

    @Test("A wrong secret, and the use of the previous one, have a line each when they begin and when they are over")
    func secrets() async throws {
        try await World.with { world in
            try await world.ask(Self.status(21004))
            #expect(world.reported == [])
            for _ in 0..<3 { await world.tracker.seeStandings() }
            #expect(world.reported == ["error Apple refuses the shared secret (21004)"])
            // Answers that Apple gives without a look at the secret tell nothing of it.
            try await world.ask(Self.status(21010))
            await world.tracker.seeStandings()
            try await world.ask(Self.vouched)
            await world.tracker.seeStandings()
            for usesPrevious in [true, false] {
                try await world.ask(Self.vouched, previousSecret: usesPrevious)
                for _ in 0..<3 { await world.tracker.seeStandings() }
            }
            // From now on a trial decides.
            try await world.ask(Self.status(21004), times: 1)
            await world.tracker.seeStandings()
            #expect(
                world.reported == [
                    "error Apple refuses the shared secret (21004)", "info Apple no longer refuses the shared secret",
                    "warning Apple refuses the shared secret and accepts the previous one",
                    "info checks no longer rest on the previous shared secret",
                ])
        }
    }

    @Test("Calls without an answer, and rows that cannot be read, have one line")
    func calls() async throws {
        try await World.with { world in
            try await world.ask(nil)
            try await world.ask(Self.odd)
            try await world.ask(nil)
            #expect(
                world.reported == [
                    "warning Apple gave no answer and is asked again by and by",
                    "warning rows of Apple's answers cannot be read",
                ])
            #expect(world.journal.lines.contains { $0.contains("The App Store did not answer.") })
        }
    }

    @Test("Pauses, slow-downs and incidents that the database knows of have one line, and an incident's end too")
    func standings() async throws {
        try await World.with { world in
            func see(_ change: String) async throws {
                try await world.served.run(change)
                for _ in 0..<3 { await world.tracker.seeStandings() }
            }
            let app = "app_id = (SELECT app_id FROM ledger.app WHERE bundle_id = 'com.example.app')"
            try await see(
                "UPDATE ledger.app_budget SET paused_until = now() + interval '1 h', paused_because = 'why' WHERE \(app)"
            )
            try await see(
                """
                UPDATE ledger.app_budget SET rate = 50, slowed_to = 1, slowed_at = now() + interval '1 h' WHERE \(app);
                INSERT INTO ledger.incident (app_id, kind, opened_at, recognised_at, asked, refused, last_reason)
                SELECT app_id, 'refusals', now(), now(), 9, 4, 'Apple refused.' FROM ledger.app
                WHERE bundle_id = 'com.example.app'
                """)
            try await see("UPDATE ledger.incident SET closed_at = now()")
            #expect(
                world.reported == [
                    "warning checks of an app are paused and go on by themselves",
                    "warning Apple asks for fewer calls or has too much to do",
                    "warning Apple refuses receipts that it vouched for before",
                    "info Apple vouches for receipts again",
                ])
            for reported in ["why", "1.0 calls a second of 50.0", "4 of 9 answers"] {
                #expect(world.journal.lines.contains { $0.contains(reported) }, "\(reported)")
            }
        }
    }

    @Test("While Apple gives no answers that has one line, and not one more for each app")
    func appleAway() async throws {
        try await World.with { world in
            try await world.served.run(
                """
                UPDATE ledger.apple_breaker SET failures = 5, paused_until = now() + interval '1 h', paused_because = 'no answer';
                UPDATE ledger.app_budget SET failures = 5
                """)
            for _ in 0..<3 { await world.tracker.seeStandings() }
            #expect(world.reported == ["warning Apple gives no answers"])
        }
    }

    @Test("A pause for a wrong secret is no second failure")
    func pauseForASecret() async throws {
        try await World.with { world in
            try await world.ask(Self.vouched, times: 1)
            try await world.ask(Self.status(21004), times: 1)
            for _ in 0..<3 { await world.tracker.trySecrets() }
            await world.tracker.seeStandings()
            #expect(world.reported == ["error Apple refuses the shared secret (21004) in Production"])
            #expect(try await !world.served.ledger.apps.app(ServedLedger.app).pauses.isEmpty)
        }
    }

    @Test("Each environment's wrong secret has a line of its own, and an end of its own")
    func environments() async throws {
        try await World.with { world in
            func pause(_ environment: String, since: String) async throws {
                try await world.served.run(
                    """
                    INSERT INTO ledger.secret_trial (app_id, environment, paused_since)
                    SELECT app_id, '\(environment)', \(since) FROM ledger.app WHERE bundle_id = 'com.example.app'
                    ON CONFLICT (app_id, environment) DO UPDATE SET paused_since = EXCLUDED.paused_since
                    """)
                for _ in 0..<2 { await world.tracker.seeStandings() }
            }
            try await pause("Sandbox", since: "now()")
            try await pause("Production", since: "now()")
            try await pause("Sandbox", since: "NULL")
            #expect(
                world.reported == [
                    "error Apple refuses the shared secret (21004) in Sandbox",
                    "error Apple refuses the shared secret (21004) in Production",
                    "info Apple accepts the shared secret again in Sandbox",
                ])
        }
    }

    @Test("A job that fails again and again has one line; one that fails for want of the database has none")
    func work() async throws {
        try await World.with { world in
            for _ in 0..<5 {
                await world.tracker.attempt("claim receipts") { throw LedgerError(.mismatch, "no") }
                await world.tracker.attempt("settle answers") { throw DatabaseError(.cannotConnect, "away") }
            }
            #expect(world.reported == ["warning could not claim receipts"])
        }
    }

    @Test("What was checked has one line with sums, and none where nothing was")
    func sums() async throws {
        try await World.with { world in
            let group = ServiceGroup(services: [MinuteLog(world.tracker)], logger: .quiet)
            async let running: Void = group.run()
            try await world.ask(Self.vouched, times: 1)
            try await world.ask(Self.vouched, times: 2)
            try await world.ask(Self.status(21002), times: 1)
            try await world.ask(Self.status(21003), times: 3)
            await group.triggerGracefulShutdown()
            try await running
            world.tracker.logChecks(since: .now)
            let sums = world.journal.lines.filter { $0.hasPrefix("info checked") }
            #expect(sums.count == 1 && world.reported.count == 1)
            for field in ["checks\": 7", "equal\": 2", "changed\": 1", "events\": 2", "refused\": 3", "no_answer\": 1"]
            {
                #expect(sums.first?.contains(field) == true, "\(field): \(sums)")
            }
        }
    }
}

extension String {
    /// Without a character at its end.
    fileprivate func trimmingSuffix(_ end: Character) -> String { last == end ? String(dropLast()) : self }
}
