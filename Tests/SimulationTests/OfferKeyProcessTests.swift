import Crypto
import Foundation
import Postgres
import TestSupport
import Testing

/// `perennial app offer-key` as an operator runs it.
@Suite("`perennial app offer-key` stores a key that is never shown")
struct OfferKeyProcessTests {
    private static let masterKey = Data(repeating: 7, count: 32).base64EncodedString()

    private struct Ended {
        let status: Int32
        let said: String
    }

    private func run(_ arguments: [String], on address: String) async throws -> Ended {
        let process = try PerennialProcess(
            arguments, environment: ["PERENNIAL_MASTER_KEY": Self.masterKey, "DATABASE_URL": address])
        let status = await process.end()
        let ended = Ended(status: status, said: process.said)
        try process.forget()
        return ended
    }

    /// Runs a command whose last argument is a file with this text.
    private func run(_ arguments: [String], withFile text: String, on address: String) async throws -> Ended {
        let file = FileManager.default.temporaryDirectory.appending(path: "key-\(UUID())")
        try Data(text.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        return try await run(arguments + [file.path], on: address)
    }

    @Test("A key is stored, shown by its name, and removed")
    func whole() async throws {
        try await withMigratedDatabase { database, address in
            let app = "com.example.app"
            var ended = try await run(["app", "add", "--bundle-id", app], on: address)
            #expect(ended.status == 0, "\(ended)")
            let pem = P256.Signing.PrivateKey().pemRepresentation
            let store = ["app", "offer-key", app, "--key-id", "2X9R4HXF34", "--issuer-id", "I", "--key-file"]
            ended = try await run(store, withFile: pem + "\n", on: address)
            #expect(ended.status == 0 && ended.said.contains("Stored the offer key 2X9R4HXF34"), "\(ended)")
            let secret = pem.split(separator: "\n")[1]
            ended = try await run(["app", "show", app, "--format", "json"], on: address)
            #expect(ended.said.contains(#""offer_key_id" : "2X9R4HXF34""#), "\(ended)")
            #expect(ended.said.contains(#""offer_issuer_id" : "I""#) && !ended.said.contains(secret), "\(ended)")

            ended = try await run(store, withFile: P384.Signing.PrivateKey().pemRepresentation, on: address)
            #expect(ended.status == 1 && ended.said.contains("PKCS#8"), "\(ended)")
            #expect(ended.said.split(separator: "\n").count == 1 && !ended.said.contains("BEGIN"), "\(ended)")
            ended = try await run(["app", "offer-key", app], on: address)
            #expect(ended.status == 64, "\(ended)")

            ended = try await run(["app", "offer-key", app, "--remove"], on: address)
            #expect(ended.status == 0, "\(ended)")
            ended = try await run(["app", "offer-key", app, "--remove"], on: address)
            #expect(ended.status == 1 && ended.said.contains("has no offer key"), "\(ended)")
            let rows = try await database.query(
                Statement(
                    name: "audit",
                    sql: "SELECT action FROM perennial.audit_log WHERE actor = 'user \(NSUserName())' ORDER BY audit_id"
                ))
            #expect(
                try rows.map { try $0.text("action") } == [
                    "app.added", "app.offer_key_stored", "app.offer_key_removed",
                ])
        }
    }
}
