import Subscriptions
import Testing

@testable import Ledger

@Suite("An export holds all that is kept of a customer")
struct CustomerExportTests {
    @Test("An export has entitlements, ownerships with cause and next owner, grants and receipts")
    func all() async throws {
        try await withLedger { test in
            try await test.sell()
            let receipt = try await test.upload("a", by: "ann")
            let answer = Answer(from: test.at(-9), asOf: test.at(-3))
            try await test.check(receipt, answer)
            try await test.check(
                try await test.upload("p", by: "ann"), purchase("p", at: test.at(-2), asOf: test.at(-1)))
            try await test.upload("a", by: "bob")
            try await test.check(receipt, answer.but { $0.asOf = test.at(-1) })
            try await ManualGrantTests.give(3, of: "pro", in: test)
            let ann = try await test.ledger.customers.export("ann", of: test.app.bundleID)
            #expect(ann.entitlements.filter(\.granted).map(\.name).sorted() == ["coins", "pro"])
            #expect(ann.ownerships.map(\.originalTransactionID) == ["p", "1000"])
            #expect(ann.ownerships.map(\.isSubscription) == [false, true])
            #expect(ann.ownerships.map(\.wentTo) == [nil, "bob"])
            #expect(ann.ownerships.map(\.cause) == [.upload, .upload])
            #expect(ann.grants.map(\.entitlement) == ["pro"] && ann.receipts.count == 2)
            let bob = try await test.ledger.customers.export("bob", of: test.app.bundleID)
            #expect(bob.ownerships.map(\.state) == ["active"] && bob.ownerships[0].until == nil)
            let unknown = await #expect(throws: LedgerError.self) {
                try await test.ledger.customers.export("unknown-customer", of: test.app.bundleID)
            }
            #expect(unknown?.kind == .notFound)
        }
    }
}
