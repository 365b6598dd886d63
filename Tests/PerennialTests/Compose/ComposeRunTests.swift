import Foundation
import Postgres
import TestSupport
import Testing

/// What `docker compose up` starts, started in its order as the containers would be: a private PostgreSQL in place of the
/// image's, a folder in place of the volume, free ports on this machine in place of names on the engine's network.
@Suite("docker compose starts a working product", .serialized) struct ComposeRunTests {
    @Test(.timeLimit(.minutes(5)))
    func `what is started becomes well, fills the demo, checks it, and stops when asked to`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "compose-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let cluster = try await PrivateCluster()
        try await cluster.start()
        let (simulator, server) = (try freePort(), try freePort())
        let metrics = try freePort()
        let file = try ComposeFile(replacing: [
            ("/var/lib/perennial", folder), ("/usr/share/perennial/scripts", "\(ComposeFile.root.path)/scripts"),
            ("PGHOST: postgres", "PGHOST: \(cluster.directory)"), ("9464", "\(metrics)"),
            ("//simulator:8090", "//127.0.0.1:\(simulator)"),
            ("8090", "\(simulator)"),
            (":8080/", ":\(server)/"), ("--host 127.0.0.1", "--host \(cluster.directory)"),
        ])
        let runner = ComposeRunner(file: file, folder: folder, further: ["PERENNIAL_HTTP_PORT": "\(server)"])
        do {
            try await makeDatabase(of: try #require(file.services["postgres"]), in: cluster)
            try await runner.up(withoutStarting: ["postgres"])
            try await everybodyIsChecked("host=\(cluster.directory) dbname=perennial user=perennial")
            for name in ["worker", "serve", "devices", "simulator"] {
                let status = try await runner.stop(name)
                #expect(status == 0, "\(name)")
            }
            #expect(runner.running.isEmpty)
        } catch {
            print(runner.said)
            runner.endAll()
            try await cluster.stop(immediate: true)
            throw error
        }
        try await cluster.stop(immediate: true)
        try await cluster.remove()
    }

    @Test func `the pretend lives go on where they stood when the simulator starts again`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "compose-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let port = try freePort()
        let file = try ComposeFile(replacing: [
            ("/var/lib/perennial", folder), ("/usr/share/perennial/scripts", "\(ComposeFile.root.path)/scripts"),
            ("8090", "\(port)"),
        ])
        var epochs: [String] = []
        for _ in 0..<2 {
            let runner = ComposeRunner(file: file, folder: folder, further: [:])
            try await runner.complete("secrets")
            try await runner.start("simulator")
            epochs.append(try String(contentsOfFile: "\(folder)/epoch", encoding: .utf8))
            let status = try await runner.stop("simulator")
            #expect(status == 0)
            try await Task.sleep(for: .seconds(1.1))
        }
        #expect(epochs[0] == epochs[1])
    }

    /// What the image of PostgreSQL makes of its environment.
    private func makeDatabase(of service: ComposeService, in cluster: PrivateCluster) async throws {
        let name = try #require(service.environment["POSTGRES_DB"])
        let user = try #require(service.environment["POSTGRES_USER"])
        let database = Database(DatabaseConfiguration(connectionString: cluster.connectionString)) { print($0) }
        try await database.runOutsideTransaction("CREATE ROLE \(user) SUPERUSER LOGIN")
        try await database.runOutsideTransaction("CREATE DATABASE \(name) OWNER \(user)")
        await database.close()
    }

    /// Waits until Apple was asked about every receipt that the demo imported.
    private func everybodyIsChecked(_ address: String) async throws {
        let database = Database(DatabaseConfiguration(connectionString: address)) { print($0) }
        let count = Statement(
            name: "count", sql: "SELECT count(*) AS all, count(asked_at) AS asked FROM ledger.receipt")
        while true {
            let row = try #require(try await database.query(count).first)
            if try row.int8("all") >= 600, try row.int8("asked") == row.int8("all") { break }
            try await Task.sleep(for: .milliseconds(100))
        }
        await database.close()
    }

    private func freePort() throws -> UInt16 {
        let handle = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(handle) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(handle, $0, length) == 0 && getsockname(handle, $0, &length) == 0
            }
        }
        try #require(isBound)
        return UInt16(bigEndian: address.sin_port)
    }
}
