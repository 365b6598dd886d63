import AppStoreSimulator
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("A server over TLS must show its certificate", .serialized) struct TLSTests {
    private static let authority = Result { try PretendAuthority() }

    @Test func `a server with the right certificate is used like any other`() async throws {
        try await Self.with { cluster, root in
            let database = Self.database(cluster.networkConnectionString + " sslmode=verify-full sslrootcert=\(root)")
            let question = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            #expect(try await database.ask(question).first?.bool("ssl") == true)
            let written = try await database.transaction {
                try $0.query(Statement(name: "ssl", sql: question)).first?.bool("ssl")
            }
            #expect(written == true)
            try await database.script("CREATE TABLE long (word text); INSERT INTO long SELECT repeat('x', 3000000)")
            #expect(try await database.ask("SELECT word FROM long").first?.text("word").count == 3_000_000)
            let slow = await databaseError { _ = try await database.ask("SELECT pg_sleep(60)") }
            #expect(slow?.kind == .timedOut)
            #expect(try await database.ask("SELECT 1 AS n").first?.int4("n") == 1)
            await database.close()
        }
    }

    @Test func `a server that cannot show who it is counts as away, and the reason says what to check`() async throws {
        try await Self.with { cluster, root in
            let stranger = try Self.file(PretendAuthority().rootPEM)
            defer { Self.remove(stranger) }
            let network = cluster.networkConnectionString
            let cases = [
                (network + " sslmode=verify-full sslrootcert=\(stranger)", "certificate verify failed"),
                (network + " sslmode=verify-ca sslrootcert=\(stranger)", "certificate verify failed"),
                (network + " sslmode=verify-full sslrootcert=/nonexistent", "does not exist"),
                (
                    network.replacing("localhost", with: "other.example")
                        + " sslmode=verify-full sslrootcert=\(root)", #"does not match host name "other.example""#
                ),
            ]
            for (address, words) in cases {
                let database = Self.database(address)
                async let read = databaseError { _ = try await database.ask("SELECT 1") }
                async let write = databaseError { _ = try await database.change("SELECT 1") }
                for error in [await read, await write] {
                    #expect(error?.kind == .cannotConnect)
                    #expect(error?.disposition == .retry(afterMilliseconds: 1_000))
                    let message = error?.message ?? ""
                    #expect(message.contains(words) && message.contains("check sslmode, sslrootcert"), "\(message)")
                    #expect(!message.contains("check that it runs"), "\(message)")
                }
                await database.close()
            }
        }
    }

    private static func database(_ address: String) -> Database {
        Database(
            DatabaseConfiguration(
                connectionString: address, connectTimeoutSeconds: 1, statementTimeoutMilliseconds: 1_000)
        ) { print("TLS: \($0)") }
    }

    /// Runs `body` with a server that speaks TLS and a file with the root of its authority.
    private static func with(_ body: (PrivateCluster, String) async throws -> Void) async throws {
        let certificate = try authority.get().issue(for: ["localhost"])
        let cluster = try await PrivateCluster(certificate: certificate.certificatePEM, key: certificate.keyPEM)
        let root = try file(authority.get().rootPEM)
        defer { remove(root) }
        try await cluster.start()
        try await body(cluster, root)
        try await cluster.stop(immediate: true)
        try await cluster.remove()
    }

    private static func file(_ text: String) throws -> String {
        let url = FileManager.default.temporaryDirectory.appending(path: "root-\(UUID()).pem")
        try text.write(to: url, atomically: true, encoding: .utf8)
        return url.path
    }

    private static func remove(_ path: String) {
        do { try FileManager.default.removeItem(atPath: path) } catch { Issue.record("\(error)") }
    }
}
