import Subscriptions
import Testing

@testable import Tracking

@Suite("The audit has every write by a person or a key, with its author")
struct AuditTests {
    private func log(_ test: TestLedger) async throws -> [[Cell]] {
        try await test.database.cells(
            """
            SELECT actor, action, bundle_id, customer, receipt_id, detail::text FROM perennial.audit_log
            ORDER BY audit_id
            """)
    }

    @Test("Commands are remembered by their user, requests by their key")
    func whoDidWhat() async throws {
        try await withLedger { test in
            let person = test.ledger.acting(as: .user("kim"))
            try await person.apps.add("com.example.two", secret: "a secret")
            var change = AppChange()
            change.callsPerSecond = 7
            try await person.apps.change("com.example.two", change)
            try await person.apps.rotateSecret(of: "com.example.two", to: "another secret")
            try await person.apps.applyCatalog(
                [CatalogProduct(id: "gold", entitlements: ["pro"])], to: "com.example.two")
            _ = try await person.apps.openNotifications(of: "com.example.two")
            try await person.apps.closeNotifications(of: "com.example.two")
            let key = try await person.apps.createKey(scope: .write, for: "com.example.two")
            let caller = test.ledger.acting(as: .key(key.id))
            let upload = Upload(appID: 2, customer: "ann", receipt: [1], imported: false)
            let stored = try #require(try await caller.intake.store([upload]).first)
            try await person.apps.revokeKey(key.id)
            _ = try await person.intake.openImport(
                of: ImportedFile(name: "old.ndjson", byteCount: 7, firstBytes: [1], lastBytes: [1]))
            let app: Cell = "com.example.two"
            let created = #"{"key": "\#(key.id)", "scope": "write"}"#
            let expected: [[Cell]] = [
                ["user kim", "app.added", app, nil, nil, "{}"],
                ["user kim", "app.changed", app, nil, nil, #"{"rate": "7.0"}"#],
                ["user kim", "app.secret_rotated", app, nil, nil, "{}"],
                ["user kim", "catalog.applied", app, nil, nil, #"{"products": "1"}"#],
                ["user kim", "app.changed", app, nil, nil, #"{"notifications": "on"}"#],
                ["user kim", "app.changed", app, nil, nil, #"{"notifications": "off"}"#],
                ["user kim", "key.created", app, nil, nil, .text(created)],
                [.text("key \(key.id)"), "receipt.stored", app, "ann", .receipt(stored.receiptID), "{}"],
                ["user kim", "key.revoked", app, nil, nil, .text(#"{"key": "\#(key.id)"}"#)],
                ["user kim", "import.opened", nil, nil, nil, #"{"file": "old.ndjson", "bytes": "7"}"#],
            ]
            #expect(try await log(test) == expected)
        }
    }

    @Test("A skip is remembered once, with its customer, and so is what a person acknowledged; orders are not")
    func deliveries() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            for (id, quantity) in [("p", 1), ("q", 2), ("r", 3)] { try await test.buys(id, quantity: quantity) }
            let page = try await test.ledger.deliveries.read(
                of: test.app.bundleID, after: 0, limit: 9)
            let ids = page.deliveries.map(\.id)
            let key = try await test.ledger.apps.createKey(scope: .admin, for: nil)
            let (kim, service) = (test.ledger.acting(as: .user("kim")), test.ledger.acting(as: .key(key.id)))
            for _ in 0..<2 {
                _ = try await kim.deliveries.skip(ids[0], of: test.app.bundleID, because: "a mistake")
                _ = try await kim.deliveries.acknowledge([ids[1], 99], of: test.app.bundleID)
                _ = try await service.deliveries.acknowledge([ids[2]], of: test.app.bundleID)
            }
            _ = try await service.orders.place(
                OrderRequest(customer: "ann", productID: "coins"), of: test.app.bundleID, requestKey: "k")
            let app: Cell = "com.example.app"
            let skipped = #"{"reason": "a mistake", "decided_by": "kim", "delivery_id": "\#(ids[0])"}"#
            let expected: [[Cell]] = [
                ["user kim", "delivery.skipped", app, "ann", nil, .text(skipped)],
                ["user kim", "delivery.acknowledged", app, nil, nil, .text(#"{"delivery_ids": "\#(ids[1])"}"#)],
            ]
            #expect(try await log(test) == expected)
            for blank in ["", "  ", "a\0b", String(repeating: "x", count: 1_001)] {
                let error = await #expect(throws: LedgerError.self) {
                    try await kim.deliveries.skip(ids[0], of: test.app.bundleID, because: blank)
                }
                #expect(error?.kind == .invalid)
            }
        }
    }

    @Test("What changes nothing, what fails, and what a worker does is not remembered")
    func nothingToRemember() async throws {
        try await withLedger { test in
            let person = test.ledger.acting(as: .user("kim"))
            await #expect(throws: LedgerError.self) { try await person.apps.revokeKey(99) }
            await #expect(throws: LedgerError.self) { _ = try await person.apps.createKey(scope: .read, for: "no.app") }
            await #expect(throws: LedgerError.self) { try await person.apps.add("com.example.app") }
            try await test.upload("a")
            _ = try await person.intake.store([
                Upload(appID: test.app.id, customer: "ann", receipt: [1], imported: true)
            ])
            #expect(try await log(test) == [])
        }
    }
}

@Suite("A customer may bring a limited number of new receipts")
struct FloodTests {
    private func bring(_ word: String, by customer: String = "ann", to test: TestLedger) async throws {
        let upload = Upload(appID: test.app.id, customer: customer, receipt: Array(word.utf8), imported: false)
        _ = try await test.ledger.intake.store([upload], newReceiptsMax: 10)
    }

    @Test("Each customer brings ten new receipts an hour; known ones are always accepted")
    func tenAnHour() async throws {
        try await withLedger { test in
            for number in 1...10 { try await bring("r\(number)", to: test) }
            let error = await #expect(throws: LedgerError.self) { try await bring("r11", to: test) }
            guard case .exhausted(let seconds)? = error?.kind else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect((3500...3600).contains(seconds))
            try await bring("r1", to: test)
            try await bring("r11", by: "bob", to: test)
            try await bring("r11", to: test)
            #expect(try await test.text("SELECT count(*) FROM ledger.receipt") == "11")
            try await test.run("UPDATE ledger.receipt SET received_at = received_at - interval '1 hour'")
            try await bring("r12", to: test)
        }
    }

    @Test("Uploads side by side do not slip through")
    func sideBySide() async throws {
        try await withLedger(connections: 8) { test in
            let refused = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        do {
                            try await bring("r\(number)", to: test)
                            return false
                        } catch let error as LedgerError {
                            guard case .exhausted = error.kind else { throw error }
                            return true
                        }
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(refused == 10)
            #expect(try await test.text("SELECT count(*) FROM ledger.receipt") == "10")
        }
    }
}
