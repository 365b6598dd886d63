import Crypto
import Foundation
import Postgres
import TestSupport
import Testing

/// `perennial app set --verifier both` and `perennial report channel_differences`, as an operator runs them.
@Suite("An operator compares the channels, and is not let out before they agree")
struct ChannelProcessTests {
    private static let app = "com.example.app"

    private func run(_ arguments: [String], on address: String) async throws -> (status: Int32, said: String) {
        let key = Data(repeating: 7, count: 32).base64EncodedString()
        let process = try PerennialProcess(
            arguments, environment: ["PERENNIAL_MASTER_KEY": key, "DATABASE_URL": address])
        let status = await process.end()
        let said = process.said
        try process.forget()
        return (status, said)
    }

    @Test(
        "Both is refused without a key, left only with force and a reason, and the report ends with 2 while it finds something"
    )
    func compare() async throws {
        try await withMigratedDatabase { database, address in
            let file = FileManager.default.temporaryDirectory.appending(path: "key-\(UUID())")
            try Data(P256.Signing.PrivateKey().pemRepresentation.utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            _ = try await run(["app", "add", "--bundle-id", Self.app], on: address)
            let both = ["app", "set", Self.app, "--verifier", "both"]
            var ended = try await run(both, on: address)
            #expect(ended.status == 1 && ended.said.contains("perennial app server-key --app"), "\(ended)")
            let store = ["app", "server-key", "--app", Self.app, "--key-id", "K", "--issuer-id", "I", "--key-file"]
            ended = try await run(store + [file.path], on: address)
            #expect(ended.status == 0, "\(ended)")
            ended = try await run(both, on: address)
            #expect(ended.status == 0, "\(ended)")

            let report = ["report", "channel_differences", "--app", Self.app]
            ended = try await run(report, on: address)
            #expect(ended.status == 0 && ended.said.contains("UNEXPLAINED"), "\(ended)")
            try await database.transaction { transaction in
                try transaction.script(
                    """
                    INSERT INTO ledger.channel_difference (
                        app_id, environment, original_transaction_id, transaction_id, fact, verify_receipt, server_api,
                        first_seen_at, last_seen_at, waits_until)
                    SELECT app_id, 'Production', '1000', '', 'will_renew', 'true', 'false', now(), now(), now() FROM ledger.app
                    """)
            }
            ended = try await run(report + ["--format", "csv"], on: address)
            #expect(ended.status == 2 && ended.said.contains("will_renew"), "\(ended)")

            let leave = ["app", "set", Self.app, "--verifier", "server_api"]
            ended = try await run(leave, on: address)
            #expect(ended.status == 1 && ended.said.contains("0 of 7 days"), "\(ended)")
            ended = try await run(leave + ["--force"], on: address)
            #expect(ended.status == 64 && ended.said.contains("--reason"), "\(ended)")
            ended = try await run(leave + ["--force", "--reason", "a test"], on: address)
            #expect(ended.status == 0, "\(ended)")
        }
    }
}
