import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("No app makes more calls than its budget")
struct BudgetTests {
    private func limit(_ test: TestLedger, rate: Double, burst: Double) async throws {
        var change = AppChange()
        (change.callsPerSecond, change.burst) = (rate, burst)
        try await test.ledger.apps.change(test.app.bundleID, change)
        try await test.run("UPDATE ledger.app_budget SET tokens = burst, refilled_at = clock_timestamp()")
    }

    private func take(_ test: TestLedger, _ calls: Int) async throws -> Int {
        try #require(try await test.ledger.claims.takeBudget([(app: test.app, calls: calls)])[test.app.id])
    }

    @Test("A budget gives its burst at once, and then what the rate refills")
    func burst() async throws {
        try await withLedger { test in
            // So slow that the test's own duration refills nothing.
            try await limit(test, rate: 0.0001, burst: 10)
            #expect(try await take(test, 4) == 4)
            #expect(try await take(test, 40) == 6)
            #expect(try await take(test, 1) == 0)
            try await test.run("UPDATE ledger.app_budget SET refilled_at = refilled_at - interval '30000 s'")
            #expect(try await take(test, 40) == 3)
            try await test.run("UPDATE ledger.app_budget SET refilled_at = refilled_at - interval '10 days'")
            #expect(try await take(test, 40) == 10)
        }
    }

    @Test("A burst that was not chosen follows the rate; a chosen one stays")
    func burstOfRate() async throws {
        try await withLedger { test in
            var change = AppChange()
            for rate in [0.0, 80, 0.5] {
                change.callsPerSecond = rate
                try await test.ledger.apps.change(test.app.bundleID, change)
                #expect(try await test.appNow().burst == max(1, rate))
            }
            try await limit(test, rate: 50, burst: 7)
            change.callsPerSecond = 80
            try await test.ledger.apps.change(test.app.bundleID, change)
            #expect(try await test.appNow().burst == 7)
        }
    }

    @Test("A rate of 0 is unlimited; a pause gives nothing whatever the rate", arguments: [0.0, 50.0])
    func pause(rate: Double) async throws {
        try await withLedger { test in
            try await limit(test, rate: rate, burst: 20)
            #expect(try await take(test, 15) == 15)
            try await test.run(
                "UPDATE ledger.app_budget SET paused_until = now() + interval '60 s', paused_because = 'a test'")
            #expect(try await take(test, 1) == 0)
            #expect(try await test.appNow().pause?.reason == "a test")
            try await test.upload("a")
            #expect(try await test.ledger.claims.due(limit: 9).isEmpty)
            try await test.run("UPDATE ledger.app_budget SET paused_until = now()")
            #expect(try await take(test, 1) == 1)
            #expect(try await test.appNow().pause == nil)
        }
    }

    @Test("A shorter pause leaves a longer one its reason")
    func reasonOfThePause() async throws {
        try await withLedger { test in
            for owner in [RateLimitOwner.app(test.app.id), .everyone] {
                let table = owner == .everyone ? "apple_breaker" : "app_budget"
                for (seconds, reason, shown) in [(600.0, "long", "long"), (5, "short", "long"), (900, "last", "last")] {
                    try await test.ledger.apps.changeRateLimit(of: owner) { limit, _ in
                        RateLimitChange(rateLimit: limit, pauseSeconds: seconds, reason: reason)
                    }
                    #expect(try await test.text("SELECT paused_because FROM ledger.\(table)") == shown)
                }
            }
        }
    }

    @Test("Apple's wish for fewer calls slows all workers down, and a minute later all is as before")
    func slowed() async throws {
        try await withLedger { test in
            try await limit(test, rate: 60, burst: 120)
            try await slow(test, to: 2)
            // Saved-up calls are gone: one now, and what two or a little more a second bring.
            #expect(try await take(test, 50) <= 2)
            try await test.run("UPDATE ledger.app_budget SET refilled_at = refilled_at - interval '1 hour'")
            let few = try await take(test, 50)
            #expect((4...6).contains(few))
            try await test.run("UPDATE ledger.app_budget SET slowed_at = slowed_at - interval '1 minute'")
            try await test.run("UPDATE ledger.app_budget SET refilled_at = refilled_at - interval '1 hour'")
            #expect(try await take(test, 500) == 120)
        }
    }

    @Test("An app without a rate is slowed down too")
    func slowedFromUnlimited() async throws {
        try await withLedger { test in
            #expect(try await take(test, 5000) == 5000)
            try await slow(test, to: 0.5)
            #expect(try await take(test, 5000) <= 16)
            try await test.run("UPDATE ledger.app_budget SET slowed_at = slowed_at - interval '1 minute'")
            #expect(try await take(test, 5000) == 5000)
        }
    }

    private func slow(_ test: TestLedger, to callsPerSecond: Double) async throws {
        try await test.ledger.apps.changeRateLimit(of: .app(test.app.id)) { pace, now in
            var next = pace
            next.slowed = CallRateLimit.Slowed(to: callsPerSecond, at: now)
            return RateLimitChange(rateLimit: next, pauseSeconds: 0, reason: "HTTP 429")
        }
    }

    @Test("The database reckons with the same pace as the program")
    func samePace() async throws {
        try await withLedger { test in
            func expectSame(_ rate: Double, slowedTo: Double, after seconds: Double) async throws {
                let pace = CallRateLimit(callsPerSecondMax: rate, slowed: .init(to: slowedTo, at: test.now))
                let at = Instant(milliseconds: test.now.milliseconds + Int64(seconds * 1000))
                let said = try await test.text(
                    """
                    SELECT ledger.calls_a_second($1::float8, $2::float8, $3::timestamptz, $4::timestamptz)::numeric(12, 6)
                        AS pace
                    """, [.float8(rate), .float8(slowedTo), .instant(test.now), .instant(at)])
                let number = try #require(Double(said))
                #expect(
                    abs(number - pace.callsPerSecond(at: at)) < 1e-5, "\(rate), \(slowedTo) after \(seconds) s")
            }
            for rate in [0, 0.5, 10, 50, 3000] {
                for (slowedTo, seconds) in [(0.5, 0.0), (0.5, 7), (3.25, 59.9), (0.5, 60), (800, 12), (5, -30)] {
                    try await expectSame(rate, slowedTo: slowedTo, after: seconds)
                }
            }
        }
    }

    @Test("Many takers at once together never exceed the burst")
    func together() async throws {
        try await withLedger(connections: 8) { test in
            try await limit(test, rate: 0.0001, burst: 100)
            let taken = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<30 { group.addTask { try await take(test, 7) } }
                return try await group.reduce(0, +)
            }
            #expect(taken == 100)
        }
    }

    @Test("A refused secret counts as no attempt, ends no access and, about one receipt, pauses nothing")
    func wrongSecret() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-3)))
            let claim = try await test.claim(receipt)
            #expect(claim.attempts == 1)
            try await test.settle(claim, rejected(.wrongSecret, status: 21004))
            #expect(try await test.text("SELECT attempts FROM ledger.poll_schedule") == "0")
            try await test.expectRows("SELECT rejections, rejected_since FROM ledger.receipt", [[0, nil]])
            #expect(
                try await test.text(
                    "SELECT due_at BETWEEN now() + interval '290 s' AND now() + interval '316 s' FROM ledger.poll_schedule"
                ) == "true")
            #expect(try await test.appNow().pauses.isEmpty)
            #expect(try await take(test, 5) == 5)
            #expect(try await test.entitled() == [true, "monthly", "active", nil, "Production", "verified"])
        }
    }
}

@Suite("Each kind of call of the Server API has a budget of its own")
struct CallBudgetTests {
    /// Takes calls until one has to wait: those that are allowed at once, and those of the time that the taking took.
    private func expectTaken(
        _ kind: CallKind, _ environment: StoreEnvironment, atOnce: ClosedRange<Int>, rate: Double, in test: TestLedger
    ) async throws {
        let app = try await test.appNow()
        let start = ContinuousClock.now
        var calls = 0
        while try await test.ledger.claims.takeCall(kind, of: app, in: environment) == nil, calls < 1_000 { calls += 1 }
        let later = Int((ContinuousClock.now - start) / .seconds(1) * rate)
        #expect(
            calls >= atOnce.lowerBound && calls - later <= atOnce.upperBound,
            "\(kind) \(environment): \(calls), \(later)")
    }

    @Test("A kind and an environment that are used up leave the others alone")
    func apart() async throws {
        try await withLedger { test in
            var change = AppChange()
            change.callsPerSecond = 50
            try await test.ledger.apps.change(test.app.bundleID, change)
            try await expectTaken(.statuses, .production, atOnce: 50...60, rate: 50, in: test)
            try await expectTaken(.history, .production, atOnce: 50...60, rate: 50, in: test)
            try await expectTaken(.transactions, .production, atOnce: 50...60, rate: 50, in: test)
            try await expectTaken(.transactions, .sandbox, atOnce: 5...7, rate: 5, in: test)
            try await expectTaken(.refunds, .production, atOnce: 10...12, rate: 10, in: test)
            try await expectTaken(.extensions, .production, atOnce: 20...24, rate: 20, in: test)
            try await expectTaken(.single, .production, atOnce: 1...2, rate: 1, in: test)
            let wait = try await test.ledger.claims.takeCall(.single, of: try await test.appNow(), in: .production)
            #expect(wait.map { (0.01...1).contains($0) } == true)
        }
    }

    @Test("A pause lasts as long as Apple says, at most an hour, and no shorter one ends it")
    func pause() async throws {
        try await withLedger { test in
            let app = try await test.appNow()
            try await test.ledger.claims.pauseCalls(.refunds, of: app, in: .production, seconds: 100_000)
            try await test.ledger.claims.pauseCalls(.refunds, of: app, in: .production, seconds: 5)
            let wait = try await test.ledger.claims.takeCall(.refunds, of: app, in: .production)
            #expect(wait.map { (3_500...3_600).contains($0) } == true)
            #expect(try await test.ledger.claims.takeCall(.transactions, of: app, in: .production) == nil)
        }
    }
}
