import AppStoreSimulator
import Foundation
import Subscriptions
import TestSupport
import Testing
import Tracking

/// `perennial support` as an operator runs it.
@Suite("`perennial support` asks Apple for a person, and says in one line why Apple refuses")
struct SupportProcessTests {
    /// Runs a command of support in a world; returns its status and all that it said.
    private func run(_ arguments: [String], in support: SupportWorld) async throws -> (status: Int32, said: String) {
        try await support.world.serverSettings { settings in
            let process = try PerennialProcess(
                ["support", arguments[0], "--app", support.app.bundleID.text] + arguments.dropFirst(),
                in: support.world, further: settings)
            let status = await process.end()
            defer { try? process.forget() }
            return (status, process.said)
        }
    }

    @Test("Extensions, tokens and transactions are shown as a table and as JSON with stable keys")
    func calls() async throws {
        try await SupportWorld.with { support in
            let extend = ["extend", "--original-transaction-id", support.id, "--days", "2", "--reason", "satisfaction"]
            let first = try await run(extend, in: support)
            #expect(
                first.status == 0 && first.said.contains("Apple is asked about the subscription at once."), "\(first)")
            let again = try await run(extend + ["--format", "json"], in: support)
            #expect(again.status == 0 && again.said.contains(#""repeated" : true"#), "\(again)")
            #expect(again.said.contains(#""outcome" : "done""#) && again.said.contains(#""extended_until" : "20"#))
            let token = "3F2504E0-4F89-41D3-9A0C-0305E82C3301"
            let set = try await run(
                ["account-token", "--original-transaction-id", support.id, "--token", token], in: support)
            #expect(set.status == 0 && set.said.contains("done"), "\(set)")
            for (command, found) in [("transaction", true), ("history", true), ("refunds", false)] {
                let ended = try await run(
                    [command, "--transaction-id", support.id, "--format", "csv"], in: support)
                #expect(ended.status == 0 && ended.said.contains("original_transaction_id,product_id"), "\(ended)")
                #expect(ended.said.contains("com.example.tracker.monthly") == found, "\(ended)")
                #expect(ended.said.contains(token.lowercased()) == found, "\(ended)")
            }
            let unknown = try await run(["transaction", "--transaction-id", "1"], in: support)
            #expect(unknown.status == 1 && unknown.said.contains("is it one of the other environment?"), "\(unknown)")
            let nowhere = try await run(["extend-status", "--product", "p"], in: support)
            #expect(nowhere.status == 1 && nowhere.said.contains("perennial support extend-all"), "\(nowhere)")
            let all = try await run(
                ["extend-all", "--product", "com.example.tracker.monthly", "--days", "1", "--reason", "outage"],
                in: support)
            #expect(all.status == 0, "\(all)")
            let status = try await run(
                ["extend-status", "--product", "com.example.tracker.monthly", "--format", "json"], in: support)
            #expect(status.status == 0 && status.said.contains(#""complete" : true"#), "\(status)")
        }
    }

    @Test("Without the customer's consent nothing is sent, and a malformed command is not made")
    func refused() async throws {
        try await SupportWorld.with { support in
            let id = try support.coins()
            let consumption = ["consumption", "--transaction-id", id, "--consumed-percent", "40"]
            let silent = try await run(consumption, in: support)
            #expect(silent.status == 64 && silent.said.contains("only with the customer's consent"), "\(silent)")
            for arguments in [
                ["extend", "--original-transaction-id", "1", "--days", "91", "--reason", "outage"],
                ["extend-all", "--product", "p", "--days", "1", "--reason", "outage", "--country", "us"],
                ["account-token", "--original-transaction-id", "1", "--token", "x"],
                consumption + ["--customer-consented", "--delivery", "other"],
                consumption + ["--customer-consented", "--not-consented"],
            ] {
                #expect(try await run(arguments, in: support).status == 64, "\(arguments)")
            }
            #expect(support.world.simulator.serverCallCount == 0)
            #expect(try await support.rows("request_id", "perennial.support_log") == [])
            let sent = try await run(consumption + ["--customer-consented", "--prefer", "decline"], in: support)
            #expect(sent.status == 0 && sent.said.contains("done") && support.world.simulator.serverCallCount == 1)
        }
    }

    @Test("A test notification arrives, or the command says where to look")
    func testNotification() async throws {
        try await SupportWorld.with { support in
            let nowhere = try await run(["test-notification"], in: support)
            #expect(nowhere.status == 1 && nowhere.said.contains("(4040007)"), "\(nowhere)")
            try await support.world.hearing(dropped: 0, doubled: 0, reordered: 0) {
                let ended = try await run(["test-notification", "--format", "json"], in: support)
                #expect(ended.status == 0 && ended.said.contains(#""result" : "SUCCESS""#), "\(ended)")
                #expect(ended.said.contains(#""received_at" : "20"#), "\(ended)")
            }
        }
    }
}
