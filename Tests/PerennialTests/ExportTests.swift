import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

@Suite("scripts/export-csv writes files that are safe for a spreadsheet") struct ExportTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test func `a spreadsheet computes nothing of what customers are called`() async throws {
        try await withMigratedDatabase { database, connectionString in
            let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: Array(0..<32)))
            try await ledger.apps.add("com.example.app", callsPerSecond: 0)
            for (customer, reason) in [("=1+1", "+1"), ("-5", "a \"quoted\" = b"), ("@sum", "-x")] {
                _ = try await ledger.customers.grant(
                    "pro", to: customer, of: "com.example.app", until: nil,
                    deciding: try ManualDecision(by: "kim", because: reason))
            }
            let folder = try await export(connectionString)
            defer { try? FileManager.default.removeItem(at: folder) }
            let text = try String(contentsOf: folder.appending(path: "manual_grant_log.csv"), encoding: .utf8)
            for cells in [
                ",'=1+1,pro,", ",-5,pro,", ",'@sum,pro,", ",kim,'+1,", ",kim,\"a \"\"quoted\"\" = b\",", ",kim,'-x,",
            ] {
                #expect(text.contains(cells), "\(cells) in \(text)")
            }
        }
    }

    @Test func `orders, deliveries and balances are in the export`() async throws {
        try await withMigratedDatabase { database, connectionString in
            let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: Array(0..<32)))
            try await ledger.apps.add("com.example.app", callsPerSecond: 0)
            var monthly = CatalogProduct(id: "monthly", kind: .autoRenewable, entitlements: ["pro"])
            monthly.deliversSince = Instant(milliseconds: 0)
            try await ledger.apps.applyCatalog([monthly], to: "com.example.app")
            let order = try await ledger.orders.place(
                OrderRequest(customer: "=kim", productID: "monthly"), of: "com.example.app", requestKey: "k")
            _ = try await Tracker.quiet(ledger, appStore: .answering(Sample.verified())).submit(
                Submission(bundleID: "com.example.app", customer: "=kim", receipt: Sample.receipt()))
            let folder = try await export(connectionString)
            defer { try? FileManager.default.removeItem(at: folder) }
            func lines(_ view: String) throws -> [String] {
                try String(contentsOf: folder.appending(path: "\(view).csv"), encoding: .utf8)
                    .split(separator: "\n").map(String.init)
            }
            let log = try lines("order_log")
            #expect(log[0] == "order_id,bundle_id,customer,product_id,quantity,environment,state,cause,at")
            #expect(log.count == 2 && log[1].hasPrefix("\(order.id),com.example.app,'=kim,monthly,1,,created,placed,"))
            let delivered = try lines("delivery_log")
            #expect(
                delivered.count == 2 && delivered[1].contains(",'=kim,Production,monthly,auto_renewable,,,1,purchase,"))
            #expect(try lines("credit_balance") == ["bundle_id,customer,environment,credit,units"])
        }
    }

    /// Writes the export of a database to a new folder.
    private func export(_ connectionString: String) async throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appending(path: "export-\(UUID())")
        let process = Process()
        process.executableURL = Self.root.appending(path: "scripts/export-csv")
        process.arguments = [folder.path]
        process.environment = ProcessInfo.processInfo.environment.merging(["DATABASE_URL": connectionString]) { $1 }
        try process.run()
        #expect(await process.ended() == 0)
        return folder
    }
}
