import Ledger
import TestSupport
import Testing

@testable import perennial

@Suite struct StatusTextTests {
    @Test func `an app that is asked about more slowly is named until it has grown back`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database)
            try await ledger.addApp(NewApp(bundleID: "a", callsPerSecond: 60))
            try await ledger.addApp(NewApp(bundleID: "b", callsPerSecond: 0))
            func slow(_ ago: String) async throws -> (text: String, json: String) {
                try await database.transaction {
                    try $0.script(
                        "UPDATE ledger.app_budget SET slowed_to = 2.25, slowed_at = now() + interval '\(ago)'")
                }
                let status = try await ledger.status()
                return (status.text, status.json.rendered())
            }
            let slowed = try await slow("1 minute")
            #expect(slowed.text.contains("Slowed: a to 2.3 calls a second of 60, "), "\(slowed.text)")
            #expect(slowed.text.contains("Slowed: b to 2.3 calls a second of any number, "), "\(slowed.text)")
            #expect(
                slowed.json.contains(#""slowed":[{"app":"a","calls_per_second":"2.25","rate":60}"#), "\(slowed.json)")
            let grown = try await slow("-2 minutes")
            #expect(!grown.text.contains("Slowed") && grown.json.contains(#""slowed":[]"#), "\(grown.text)")
        }
    }
}
