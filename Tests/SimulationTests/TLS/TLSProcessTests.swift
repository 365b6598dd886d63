import AppStore
import AppStoreSimulator
import AsyncHTTPClient
import Foundation
import NIOCore
import Subscriptions
import TestSupport
import Testing
import Tracking

/// The real executable on both sides of TLS.
@Suite("The executable speaks TLS as client and as simulator", .serialized) struct TLSProcessTests {
    @Test(.timeLimit(.minutes(2)))
    func `a simulator over HTTPS is believed by those who have its root file, and by no others`() async throws {
        try await withMigratedDatabase { database, connectionString in
            let folder = try Self.folder()
            defer { Self.remove(folder) }
            let (root, secret) = (folder.appending(path: "root.pem"), folder.appending(path: "secret"))
            try Data("1234".utf8).write(to: secret)
            let simulator = try PerennialProcess(
                [
                    "simulator", "--tls", "--tls-root-file", root.path, "--port", "0", "--customers", "3", "--plain",
                    "--sandbox-customers", "0", "--month-seconds", "86400", "--shared-secret-file", secret.path,
                ], environment: [:])
            let store = try #require(try await simulator.address(), "\(simulator.said)")
            #expect(store.hasPrefix("https://") && simulator.said.contains("its authority is in \(root.path)"))
            let pem = try String(contentsOf: root, encoding: .utf8)
            let lines = folder.appending(path: "receipts.ndjson")
            try await Self.fetch("\(store)/simulator/receipts?format=ndjson", trusting: pem).write(to: lines)

            let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: PretendWorld.masterKey))
            try await ledger.apps.add("com.example.tracker", secret: "1234", callsPerSecond: 0)
            var environment = [
                "DATABASE_URL": connectionString,
                "PERENNIAL_MASTER_KEY": Data(PretendWorld.masterKey).base64EncodedString(),
                "PERENNIAL_APPSTORE_URL": "\(store)/verifyReceipt",
                "PERENNIAL_APPSTORE_SANDBOX_URL": "\(store)/sandbox/verifyReceipt",
                "PERENNIAL_APPSTORE_SERVER_URL": store, "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL": "\(store)/sandbox",
                "PERENNIAL_LEASE_SECONDS": "10", "PERENNIAL_POLL_SPEEDUP": "30",
            ]
            #expect(try await Self.run(["import", lines.path], environment).status == 0)
            let distrustful = try await Self.run(["receipt", "check", "--receipt", "1"], environment)
            #expect(distrustful.status == 1, "\(distrustful.text)")
            #expect(distrustful.text.contains("an authority that is not trusted here"), "\(distrustful.text)")
            environment["PERENNIAL_APPSTORE_ROOT_FILE"] = root.path
            let believing = try await Self.run(["receipt", "check", "--receipt", "1"], environment)
            #expect(believing.status == 0, "\(believing.text)")
            let worker = try await Self.run(["worker", "--once"], environment)
            #expect(worker.status == 0 && worker.text.contains("none is left"), "\(worker.text)")
            #expect(await simulator.stop() == 0)
            try simulator.forget()
        }
    }

    @Test(.timeLimit(.minutes(2)))
    func `a database whose certificate cannot be believed is one that is away`() async throws {
        let certificate = try PretendAuthority().issue(for: ["localhost"])
        let cluster = try await PrivateCluster(certificate: certificate.certificatePEM, key: certificate.keyPEM)
        try await cluster.start()
        let folder = try Self.folder()
        defer { Self.remove(folder) }
        let stranger = folder.appending(path: "root.pem")
        try Data(PretendAuthority().rootPEM.utf8).write(to: stranger)
        let environment = [
            "DATABASE_URL": cluster.networkConnectionString + " sslmode=verify-full sslrootcert=\(stranger.path)",
            "PERENNIAL_MASTER_KEY": Data(PretendWorld.masterKey).base64EncodedString(),
        ]
        // Each further try is a line of debug, and from the first one on the worker listens to signals.
        let worker = try PerennialProcess(
            ["worker"], environment: environment.merging(["PERENNIAL_LOG_LEVEL": "debug"]) { $1 })
        let status = try await Self.run(["status"], environment)
        #expect(status.status == 1, "\(status.text)")
        #expect(status.text.contains("Cannot connect to PostgreSQL: ") && status.text.contains("certificate verify"))
        while !worker.said.contains("again_in_seconds="), worker.process.isRunning {
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(worker.process.isRunning && worker.said.contains("certificate verify failed"), "\(worker.said)")
        #expect(await worker.stop() == 0, "\(worker.said)")
        try worker.forget()
        try await cluster.stop(immediate: true)
        try await cluster.remove()
    }

    private static func run(
        _ arguments: [String], _ environment: [String: String]
    ) async throws -> (status: Int32, text: String) {
        let process = try PerennialProcess(arguments, environment: environment)
        let status = await process.end()
        let said = process.said
        try process.forget()
        return (status, said)
    }

    /// The body of what a server answers whose authority has this root.
    private static func fetch(_ url: String, trusting root: String) async throws -> Data {
        let options = AppStoreOptions(trustedRoots: try TrustedRoots(pem: root))
        return try await options.withClient { client in
            let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(10))
            return Data(try await response.body.collect(upTo: 1 << 20).readableBytesView)
        }
    }

    private static func folder() throws -> URL {
        let url = FileManager.default.temporaryDirectory.appending(path: "tls-\(UUID())")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }

    private static func remove(_ url: URL) {
        do { try FileManager.default.removeItem(at: url) } catch { Issue.record("\(error)") }
    }
}
