import Foundation
import Ledger
import Postgres
import Subscriptions
import TestSupport
import Testing

@Suite("scripts/export-csv writes files that are safe for a spreadsheet") struct ExportTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test func `a spreadsheet computes nothing of what customers are called`() async throws {
        try await withMigratedDatabase { database, connectionString in
            let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: Array(0..<32)))
            try await ledger.apps.add(NewApp(bundleID: "com.example.app", callsPerSecond: 0))
            for (customer, reason) in [("=1+1", "+1"), ("-5", "a \"quoted\" = b"), ("@sum", "-x")] {
                _ = try await ledger.customers.grant(
                    "pro", to: customer, of: "com.example.app", until: nil,
                    deciding: try ManualDecision(by: "kim", because: reason))
            }
            let folder = FileManager.default.temporaryDirectory.appending(path: "export-\(UUID())")
            defer { try? FileManager.default.removeItem(at: folder) }
            let process = Process()
            process.executableURL = Self.root.appending(path: "scripts/export-csv")
            process.arguments = [folder.path]
            process.environment = ProcessInfo.processInfo.environment.merging(["DATABASE_URL": connectionString]) { $1 }
            try process.run()
            #expect(await process.ended() == 0)
            let text = try String(contentsOf: folder.appending(path: "manual_grant_log.csv"), encoding: .utf8)
            for cells in [
                ",'=1+1,pro,", ",-5,pro,", ",'@sum,pro,", ",kim,'+1,", ",kim,\"a \"\"quoted\"\" = b\",", ",kim,'-x,",
            ] {
                #expect(text.contains(cells), "\(cells) in \(text)")
            }
        }
    }
}
