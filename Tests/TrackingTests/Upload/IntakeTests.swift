import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("The intake stores each receipt once and each upload")
struct IntakeTests {
    @Test("The same receipt twice is one row; two customers are two uploads")
    func once() async throws {
        try await withLedger { test in
            let uploads = ["ann", "bob", "ann"].map {
                Upload(appID: test.app.id, customer: $0, receipt: Array("r".utf8), imported: false)
            }
            let stored = try await test.ledger.intake.store(uploads)
            #expect(Set(stored.map(\.receiptID)).count == 1)
            #expect(stored.map(\.isNew) == [true, false, false])
            #expect(try await test.ledger.intake.store(Array(uploads.prefix(1))).map(\.isNew) == [false])
            try await test.expectRows(
                "SELECT (SELECT count(*) FROM ledger.receipt), (SELECT count(*) FROM ledger.upload)", [[1, 2]])
            #expect(try await test.ledger.intake.store([]).isEmpty)
        }
    }

    @Test("Two apps may hold the same bytes")
    func apps() async throws {
        try await withLedger { test in
            try await test.ledger.apps.add("com.example.other")
            let other = try await test.ledger.apps.app("com.example.other")
            let stored = try await test.ledger.intake.store(
                [test.app, other].map { Upload(appID: $0.id, customer: "ann", receipt: [1, 2], imported: false) })
            #expect(Set(stored.map(\.receiptID)).count == 2)
            #expect(stored.map(\.isNew) == [true, true])
        }
    }

    @Test("Of several uploads in one call the last is the newest")
    func order() async throws {
        try await withLedger { test in
            try await test.upload("other", by: "zoe")
            let uploads = ["zoe", "ann", "mia"].map {
                Upload(appID: test.app.id, customer: $0, receipt: Array("r".utf8), imported: false)
            }
            let receipt = try #require(try await test.ledger.intake.store(uploads).first).receiptID
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
            #expect(try await test.owner() == "mia")
        }
    }

    @Test("A new upload brings the next check forward, an import of what is known does not")
    func due() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
            let soon = "SELECT due_at < now() + interval '1 minute' AS soon, lane FROM ledger.poll_schedule"
            try await test.expectRows(soon, [[false, "sweep"]])
            try await test.upload("a", imported: true)
            try await test.expectRows(soon, [[false, "sweep"]])
            try await test.upload("a", by: "bob", imported: true)
            try await test.expectRows(soon, [[true, "expiring"]])
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-0.5)))
            try await test.upload("a")
            try await test.expectRows(soon, [[true, "expiring"]])
            let claim = try await test.claim(receipt)
            let leased = try await test.rows("SELECT s::text AS row FROM ledger.poll_schedule s")
            try await test.upload("a", by: "cid")
            #expect(try await test.rows("SELECT s::text AS row FROM ledger.poll_schedule s") == leased)
            let settled = try await test.settle(claim, Answer(from: test.at(-9), asOf: test.at(-0.1)).finding)
            #expect(settled.subscriptions[0].ownership["cid"] == .transferred)
        }
    }

    @Test("A customer id is 1 to 255 characters, none of them NUL")
    func badCustomer() async throws {
        try await withLedger { test in
            for name in ["", "a\0b", String(repeating: "x", count: 256)] {
                let error = await #expect(throws: LedgerError.self, "\(name.debugDescription)") {
                    _ = try await test.upload("a", by: name)
                }
                #expect(error?.kind == .invalid, "\(name.debugDescription)")
            }
            let receipts = try await test.text("SELECT count(*) FROM ledger.receipt")
            #expect(receipts == "0")
        }
    }

    @Test("A customer's id is kept as it is, whatever it looks like")
    func names() async throws {
        try await withLedger { test in
            let names = ["a,b", "ä ö", "quote\"d", "{x}", String(repeating: "é", count: 255), "NULL"]
            let receipt = try await test.upload("r", by: names[0])
            for name in names.dropFirst() { try await test.upload("r", by: name) }
            let stored = try #require(try await test.ledger.customers.receipts(id: receipt).first)
            #expect(Set(stored.customers) == Set(names))
            #expect(stored.customers.count == names.count)
            #expect(try await test.ledger.customers.receipts(customer: "a,b").map(\.id) == [receipt])
            #expect(try await test.ledger.customers.receipts(customer: "b").isEmpty)
        }
    }

    @Test("The newest receipt Apple gives is stored with a new version only")
    func latestReceipt() async throws {
        try await withLedger { test in
            let receipt = try await test.upload("a")
            let answer = Answer(from: test.at(-9), asOf: test.at(-5))
            let latest = "SELECT convert_from(latest_receipt, 'UTF8') AS latest FROM ledger.receipt"
            try await test.check(receipt, answer, latestReceipt: "one")
            #expect(try await test.text(latest) == "one")
            try await test.check(receipt, answer.but { $0.asOf = test.at(-4) }, latestReceipt: "two")
            #expect(try await test.text(latest) == "one")
            let change = answer.but { ($0.asOf, $0.willRenew) = (test.at(-3), false) }
            try await test.check(receipt, change, latestReceipt: "three")
            #expect(try await test.text(latest) == "three")
        }
    }
}
