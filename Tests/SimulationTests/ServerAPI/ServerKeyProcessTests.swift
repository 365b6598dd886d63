import Crypto
import Foundation
import TestSupport
import Testing

/// `perennial app server-key` and what needs it, as an operator runs them.
@Suite("`perennial app server-key` stores a key that is never shown, and the Server API needs it")
struct ServerKeyProcessTests {
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

    @Test("A key is stored, used, shown by its name, and removed only when nothing needs it")
    func whole() async throws {
        try await withMigratedDatabase { _, address in
            let pem = P256.Signing.PrivateKey().pemRepresentation
            let file = FileManager.default.temporaryDirectory.appending(path: "key-\(UUID())")
            try Data(pem.utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            var ended = try await run(["app", "add", "--bundle-id", Self.app], on: address)
            #expect(ended.status == 0, "\(ended)")
            let move = ["app", "set", Self.app, "--verifier", "server_api", "--apple-app-id", "7"]
            ended = try await run(move, on: address)
            #expect(ended.status == 1 && ended.said.contains("perennial app server-key --app"), "\(ended)")
            let add = ["receipt", "add", "--app", Self.app, "--customer", "c", "--transaction-id", "1"]
            ended = try await run(add, on: address)
            #expect(ended.status == 1 && ended.said.contains("perennial app server-key --app"), "\(ended)")

            let store = ["app", "server-key", "--app", Self.app, "--key-id", "2X9R4HXF34", "--key-file", file.path]
            ended = try await run(store, on: address)
            #expect(ended.status == 64, "an issuer is needed: \(ended)")
            ended = try await run(store + ["--issuer-id", "I"], on: address)
            #expect(ended.status == 0 && ended.said.contains("Stored the server key 2X9R4HXF34"), "\(ended)")
            ended = try await run(move, on: address)
            #expect(ended.status == 0, "\(ended)")
            ended = try await run(["app", "show", Self.app, "--format", "json"], on: address)
            let secret = pem.split(separator: "\n")[1]
            #expect(ended.said.contains(#""server_key_id" : "2X9R4HXF34""#) && !ended.said.contains(secret))
            #expect(ended.said.contains(#""verifier" : "server_api""#) && ended.said.contains(#""apple_app_id" : 7"#))

            let remove = ["app", "server-key", "--app", Self.app, "--remove"]
            ended = try await run(remove, on: address)
            #expect(ended.status == 1 && ended.said.contains("--verifier verify_receipt"), "\(ended)")
            ended = try await run(["app", "set", Self.app, "--verifier", "verify_receipt"], on: address)
            #expect(ended.status == 0, "\(ended)")
            ended = try await run(remove, on: address)
            #expect(ended.status == 0, "\(ended)")
            ended = try await run(["receipt", "add", "--app", Self.app, "--customer", "c"], on: address)
            #expect(ended.status == 64 && ended.said.contains("exactly one of them"), "\(ended)")
        }
    }

    @Test("Addresses of the Server API are checked with all other settings")
    func addresses() async throws {
        let process = try PerennialProcess(
            ["worker", "--once"],
            environment: [
                "DATABASE_URL": "postgresql:///none", "PERENNIAL_MASTER_KEY": "x",
                "PERENNIAL_APPSTORE_SERVER_URL": "ftp://a", "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL": "nonsense",
            ])
        let status = await process.end()
        for words in [
            "PERENNIAL_APPSTORE_SERVER_URL is 'ftp://a'", "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL is 'nonsense'",
        ] {
            #expect(process.said.contains(words), "\(process.said)")
        }
        #expect(status == 78 && process.said.contains("PERENNIAL_MASTER_KEY"))
        try process.forget()
    }
}
