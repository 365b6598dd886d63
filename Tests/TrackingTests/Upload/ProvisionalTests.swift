import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("An import's claim counts until Apple answers")
struct ProvisionalTests {
    static let nothing: [Cell] = [false, nil, nil, nil, nil, "none"]
    static let granted: [Cell] = [true, "monthly", "active", nil, "Production", "provisional"]

    @discardableResult
    static func say(
        _ days: Double, of product: ProductID = "monthly", receipt: String = "r", by customer: String = "ann",
        in test: TestLedger
    ) async throws -> ReceiptID {
        let word = Provisional(productID: product, until: test.at(days))
        let upload = Upload(
            appID: test.app.id, customer: customer, receipt: Array(receipt.utf8), imported: true, provisional: word)
        return try #require(try await test.ledger.intake.store([upload]).first).receiptID
    }

    static func until(_ test: TestLedger) async throws -> Double {
        let text = try await test.text(
            "SELECT round(extract(epoch FROM until - $1::timestamptz) / 8640) AS days FROM perennial.entitlement_now",
            [.instant(test.now)])
        return (Double(text) ?? .nan) / 10
    }

    @Test("Every lookup grants it until its end, and none afterwards")
    func everywhere() async throws {
        try await withLedger { test in
            try await Self.say(30, in: test)
            #expect(try await test.entitled() == Self.granted)
            #expect(try await test.entitled(at: test.at(29.9)) == Self.granted)
            #expect(
                try await test.entitled(at: test.at(30)) == [
                    false, "monthly", "expired", "unknown", "Production", "provisional",
                ])
            #expect(try await test.entitled(at: test.at(-1)) == Self.nothing)
            #expect(try await test.entitled("monthly", "bob") == Self.nothing)
            let right = try #require(
                try await test.ledger.customers.entitlements(app: "com.example.app", customer: "ann").first)
            #expect(right.granted && right.basis == "provisional" && right.asOf == nil && right.checkedAt == nil)
            #expect(right.until == test.at(30))
            try await test.expectRows(
                "SELECT granted, basis, checked_at FROM perennial.entitlement_now", [[true, "provisional", nil]])
        }
    }

    @Test("Its end by an answer is an event of the customer, unless what is theirs has one", arguments: [true, false])
    func told(isTheirs: Bool) async throws {
        try await withLedger(policy: .keep) { test in
            let answer = Answer(from: test.at(-9), asOf: test.at(-1))
            if !isTheirs { try await test.check(try await test.upload("bob's", by: "bob"), answer) }
            let receipt = try await Self.say(30, in: test)
            try await test.check(receipt, answer.but { $0.asOf = test.at(-0.5) })
            #expect(try await test.entitled().last == (isTheirs ? "verified" : "none"))
            let told = """
                SELECT count(*) FROM perennial.event_log
                WHERE kind = 'entitlements.changed' AND detail ->> 'cause' = 'verification'
                """
            try await test.ledger.feed.sequenceAll()
            #expect(try await test.text(told) == (isTheirs ? "0" : "1"))
            try await test.expectSound()
        }
    }

    @Test("It grants what the catalog says of the product")
    func catalog() async throws {
        try await withLedger { test in
            try await test.ledger.apps.applyCatalog(
                [CatalogProduct(id: "monthly", entitlements: ["pro", "sync"])], to: test.app.bundleID)
            try await Self.say(30, in: test)
            #expect(try await test.entitled("pro") == Self.granted)
            #expect(try await test.entitled("sync") == Self.granted)
            #expect(try await test.entitled("monthly") == Self.nothing)
        }
    }

    @Test("The first verified answer ends it, whatever it says; refusals and failures do not")
    func ended() async throws {
        try await withLedger { test in
            let receipt = try await Self.say(30, in: test)
            try await test.check(
                receipt, .indeterminate(CheckFailure(reason: "no answer", status: nil, retryable: true)))
            #expect(try await test.entitled() == Self.granted)
            let before = try await test.betweenChanges()
            try await test.check(receipt, Answer(from: test.at(-90), asOf: test.at(-1)).but { $0.subscription = "7" })
            #expect(try await test.entitled() == [false, "monthly", "expired", "unknown", "Production", "verified"])
            // Said then, known then.
            #expect(try await test.entitled(at: test.at(1), knownAt: before) == Self.granted)
            #expect(try await test.entitled(at: test.at(1)) != Self.granted)
            // A word about a receipt that Apple vouched for is no word any more.
            try await Self.say(60, in: test)
            #expect(try await test.entitled() == [false, "monthly", "expired", "unknown", "Production", "verified"])
            #expect(try await test.text("SELECT count(*) FROM ledger.provisional") == "1")
        }
    }

    @Test("An answer that knows of nothing ends it too")
    func endedByNothing() async throws {
        try await withLedger { test in
            let receipt = try await Self.say(30, in: test)
            try await test.check(receipt, Answer(from: test.at(-9), periods: 0, asOf: test.at(-1)))
            #expect(try await test.entitled() == Self.nothing)
        }
    }

    @Test("A verified answer beats a provisional claim of the same entitlement, even with an earlier end")
    func verifiedWins() async throws {
        try await withLedger { test in
            let other = try await test.upload("other")
            try await test.check(other, Answer(from: test.at(-90), asOf: test.at(-1)))
            try await Self.say(30, in: test)
            try await Self.say(30, of: "yearly", in: test)
            #expect(try await test.entitled() == [false, "monthly", "expired", "unknown", "Production", "verified"])
            #expect(try await test.entitled("yearly") == [true, "yearly", "active", nil, "Production", "provisional"])
        }
    }

    @Test("A repeated claim is not longer, the newest of different claims counts, and none lasts more than 90 days")
    func saidAgain() async throws {
        try await withLedger { test in
            try await Self.say(30, in: test)
            try await Self.say(30, in: test)
            #expect(try await test.text("SELECT count(*) FROM ledger.provisional") == "1")
            let then = try await test.betweenChanges()
            try await Self.say(40, in: test)
            #expect(try await Self.until(test) == 40)
            #expect(try await test.entitled(at: test.at(35), knownAt: then)[0] == false)
            try await Self.say(20, in: test)
            #expect(try await Self.until(test) == 20)
            try await Self.say(400, in: test)
            #expect(try await Self.until(test) == 90)
            // As if it had first been said 80 days ago: ten are left.
            try await test.run(
                "UPDATE ledger.provisional SET since = since - interval '80 days', until = LEAST(until, since + interval '9 days')"
            )
            try await Self.say(400, in: test)
            #expect(try await Self.until(test) == 10)
            try await Self.say(-5, in: test)
            #expect(try await test.entitled()[0] == false)
        }
    }

    @Test("A claim that ends in the past grants nothing")
    func past() async throws {
        try await withLedger { test in
            try await Self.say(-1, in: test)
            #expect(try await test.entitled() == Self.nothing)
            #expect(try await test.text("SELECT count(*) FROM ledger.provisional") == "0")
            #expect(try await test.text("SELECT count(*) FROM ledger.receipt") == "1")
        }
    }
}
