import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

/// `perennial delivery`, `status` and `customer show` as processes of their own.
@Suite("The command line shows what is due, and skips it with a reason")
struct DeliveryProcessTests {
    private static let app = BundleID("com.example.app")

    /// A ledger with one due delivery, and its address.
    private func withDelivery(_ body: (SubscriptionLedger, Database, String) async throws -> Void) async throws {
        try await withMigratedDatabase { database, address in
            let ledger = SubscriptionLedger(database: database)
            try await ledger.apps.add(Self.app, callsPerSecond: 0)
            var monthly = CatalogProduct(id: "monthly", kind: .autoRenewable, entitlements: ["premium"])
            monthly.deliversSince = Instant(milliseconds: 0)
            try await ledger.apps.applyCatalog([monthly], to: Self.app)
            let tracker = Tracker.quiet(ledger, appStore: .answering(Sample.verified()))
            _ = try await tracker.submit(Submission(bundleID: Self.app, customer: "kim", receipt: Sample.receipt()))
            try await body(ledger, database, address)
        }
    }

    private func run(_ arguments: [String], on address: String) async throws -> (status: Int32, said: String) {
        let process = try PerennialProcess(arguments, environment: ["DATABASE_URL": address])
        let status = await process.end()
        defer { try? process.forget() }
        return (status, process.said)
    }

    @Test("A late delivery is a line of the status; its skip is audited once, and the export has it")
    func skip() async throws {
        try await withDelivery { ledger, database, address in
            #expect(try await run(["status"], on: address).said.contains("Not delivered") == false)
            try await database.transaction {
                try $0.script("UPDATE ledger.delivery SET created_at = now() - interval '2 hours'")
            }
            let status = try await run(["status"], on: address).said
            #expect(
                status.contains("Not delivered: 1 delivery of com.example.app due for more than an hour"), "\(status)")
            let json = try await run(["status", "--format", "json"], on: address).said
            #expect(json.contains(#""late_deliveries" : ["#) && json.contains(#""deliveries" : 1"#), "\(json)")
            let skip = ["delivery", "skip", "--app", Self.app.text, "1", "--reason"]
            #expect(try await run(skip + [" "], on: address).status == 1)
            #expect(try await run(skip + ["sent by post"], on: address).said.contains("Skipped delivery 1."))
            #expect(try await run(skip + ["again"], on: address).said.contains("Delivery 1 was skipped before."))
            let audit = try await database.query(
                .init(
                    name: "audit",
                    sql:
                        "SELECT customer, detail ->> 'reason' AS reason FROM perennial.audit_log WHERE action LIKE 'delivery.%'"
                ))
            #expect(try audit.map { try $0.text("customer") + ": " + $0.text("reason") } == ["kim: sent by post"])
            let shown = try await run(
                ["customer", "show", "--app", Self.app.text, "--customer", "kim", "--format", "json"], on: address)
            for text in [#""skip_reason" : "sent by post""#, #""orders" : ["#, #""order_log" : ["#, #""balances" : ["#]
            {
                #expect(shown.said.contains(text), "\(text) in \(shown.said)")
            }
            #expect(try await run(["status"], on: address).said.contains("Not delivered") == false)
        }
    }
}
