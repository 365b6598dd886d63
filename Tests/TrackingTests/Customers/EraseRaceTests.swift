import Postgres
import SQL
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// Writers that name a customer while an erasure holds that customer. Each waits for it, and then goes on with a new
/// customer of the same name; none is refused, and none writes to what was erased.
@Suite("A writer that meets an erasure comes before it or after it, never between")
struct EraseRaceTests {
    /// What names the customer `ann`.
    enum Writer: CaseIterable {
        case upload, importing, grant, assignment, mergeFrom, mergeInto

        func run(in test: TestLedger) async throws {
            let (customers, app) = (test.ledger.customers, test.app.bundleID)
            let decision = try ManualDecision(by: "kim", because: "a test")
            switch self {
            case .upload: try await test.upload("another")
            case .importing: try await test.upload("another", imported: true)
            case .grant: _ = try await customers.grant("gold", to: "ann", of: app, until: nil, deciding: decision)
            case .assignment: _ = try await customers.assign("1000", to: "ann", of: app, deciding: decision)
            case .mergeFrom: _ = try await customers.merge("ann", into: "bob", of: app, deciding: decision)
            case .mergeInto: _ = try await customers.merge("bob", into: "ann", of: app, deciding: decision)
            }
        }
    }

    @Test("A customer who is renamed while a writer waits for the row is a new customer", arguments: Writer.allCases)
    func renamed(writer: Writer) async throws {
        try await withLedger(connections: 4) { test in
            try await test.sell([CatalogProduct(id: "coins", entitlements: ["gold"])])
            let receipt = try await test.upload("r", by: "bob")
            try await test.check(receipt, Answer(from: test.at(-9), asOf: test.at(-1)))
            try await test.upload("ann's")
            let waiting = try await test.database.transaction { transaction in
                try transaction.script("SELECT FROM ledger.customer WHERE name = 'ann' FOR UPDATE")
                let waiting = Task { try await writer.run(in: test) }
                try transaction.waitUntilAnotherIsBlocked()
                try transaction.script(
                    "UPDATE ledger.customer SET name = 'erased-1', erased_at = now() WHERE name = 'ann'")
                return waiting
            }
            if writer == .mergeFrom {
                // No customer has the name any more.
                await #expect { try await waiting.value } throws: { ($0 as? LedgerError)?.kind == .notFound }
            } else {
                try await waiting.value
                #expect(try await test.text("SELECT count(*) FROM ledger.customer WHERE name = 'ann'") == "1")
            }
        }
    }

    /// Whether the schedule still has a row for the receipt, which erasures and uploads lock first.
    @Test("A receipt that is erased while its upload waits is stored anew", arguments: [false, true])
    func erasedReceipt(isScheduled: Bool) async throws {
        try await withLedger(connections: 4) { test in
            let first = try await test.upload("r")
            if !isScheduled { try await test.run("DELETE FROM ledger.poll_schedule") }
            let waiting = try await test.database.transaction { transaction in
                try transaction.script(
                    "SELECT FROM ledger.poll_schedule FOR UPDATE; SELECT FROM ledger.receipt FOR UPDATE")
                let waiting = Task { try await test.upload("r") }
                try transaction.waitUntilAnotherIsBlocked()
                try transaction.query(
                    Queries.eraseReceipts, [.int8s([first.number]), .timestamptz(microseconds: test.now.microseconds)])
                try transaction.script("DELETE FROM ledger.upload")
                return waiting
            }
            #expect(try await waiting.value != first)
            #expect(try await test.rows(Self.lost) == [])
        }
    }

    @Test("An erasure sees who uploads the receipt meanwhile, and leaves it to them", arguments: [false, true])
    func uploadedMeanwhile(isScheduled: Bool) async throws {
        try await withLedger(connections: 4) { test in
            let receipt = try await test.upload("r")
            try await test.upload("bob's", by: "bob")
            if !isScheduled { try await test.run("DELETE FROM ledger.poll_schedule") }
            let (upload, erasure) = try await test.database.transaction { transaction in
                // Bob's upload has read the receipt and waits for bob.
                try transaction.script("SELECT FROM ledger.customer WHERE name = 'bob' FOR UPDATE")
                let upload = Task { try await test.upload("r", by: "bob") }
                try transaction.waitUntilAnotherIsBlocked()
                let erasure = Task {
                    try await test.ledger.customers.erase(
                        "ann", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "a test"))
                }
                try transaction.waitUntilAnotherIsBlocked(sessions: 2)
                return (upload, erasure)
            }
            #expect(try await upload.value == receipt)
            let erased = try await erasure.value
            #expect((erased.receipts, erased.sharedReceipts) == (0, 1))
            #expect(try await test.rows(Self.lost) == [])
        }
    }

    @Test("An upload keeps its receipt while the app's receipts without an upload are erased")
    func unclaimed() async throws {
        try await withLedger(connections: 4) { test in
            let receipt = try await test.upload("r")
            try await test.run("DELETE FROM ledger.upload; DELETE FROM ledger.customer")
            let (upload, erasure) = try await test.database.transaction { transaction in
                // The upload has read the receipt by then.
                try transaction.script("LOCK TABLE ledger.upload IN EXCLUSIVE MODE")
                let upload = Task { try await test.upload("r", by: "bob") }
                try transaction.waitUntilAnotherIsBlocked()
                let erasure = Task {
                    try await test.ledger.apps.eraseCustomers(
                        of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "a test")
                    ) { _ in }
                }
                try transaction.waitUntilAnotherIsBlocked(sessions: 2)
                return (upload, erasure)
            }
            #expect(try await upload.value == receipt)
            _ = try await erasure.value
            #expect(try await test.rows(Self.lost) == [])
        }
    }

    /// Uploads of erased receipts. Apple is never asked about these, so that their senders get nothing.
    private static let lost =
        "SELECT u.receipt_id FROM ledger.upload u JOIN ledger.receipt r USING (receipt_id) WHERE r.erased_at IS NOT NULL"

    @Test("Uploads and erasures at the same time lose no upload")
    func together() async throws {
        var random = Seeded(seed: 20_261_128)
        try await withLedger(connections: 4) { test in
            for _ in 0..<20 {
                try await test.upload("r")
                if Bool.random(using: &random) { try await test.run("DELETE FROM ledger.poll_schedule") }
                let sender = Bool.random(using: &random) ? "ann" : "bob"
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await test.upload("r", by: sender) }
                    group.addTask {
                        _ = try await test.ledger.customers.erase(
                            "ann", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "a test"))
                    }
                    try await group.waitForAll()
                }
                #expect(try await test.rows(Self.lost) == [])
            }
            try await test.expectSound()
        }
    }
}
