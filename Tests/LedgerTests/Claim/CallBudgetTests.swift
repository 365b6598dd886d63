import Subscriptions
import Testing

@testable import Ledger

@Suite("Each kind of call of the Server API has a budget of its own")
struct CallBudgetTests {
    private func taken(_ test: TestLedger, _ kind: CallKind, _ environment: StoreEnvironment) async throws -> Int {
        let app = try await test.appNow()
        var calls = 0
        while try await test.ledger.claims.takeCall(kind, of: app, in: environment) == nil, calls < 1_000 { calls += 1 }
        return calls
    }

    @Test("A kind and an environment that are used up leave the others alone")
    func apart() async throws {
        try await withLedger { test in
            var change = AppChange()
            change.callsPerSecond = 50
            try await test.ledger.apps.change(test.app.bundleID, change)
            #expect((50...60).contains(try await taken(test, .statuses, .production)))
            #expect((50...60).contains(try await taken(test, .history, .production)))
            #expect((50...60).contains(try await taken(test, .transactions, .production)))
            #expect((5...7).contains(try await taken(test, .transactions, .sandbox)))
            #expect((10...12).contains(try await taken(test, .refunds, .production)))
            #expect((20...24).contains(try await taken(test, .extensions, .production)))
            #expect((1...2).contains(try await taken(test, .single, .production)))
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
