import Foundation
import Postgres
import TestSupport
import Testing

/// What `docker compose up` starts, started in its order as the containers would be: a private PostgreSQL in place of the
/// image's, a folder in place of the volume, free ports on this machine in place of names on the engine's network.
@Suite("docker compose starts a working product", .serialized) struct ComposeRunTests {
    /// The folder in place of the volume `state`, and PostgreSQL in place of the image's.
    private struct Engine {
        let folder: String
        let cluster: PrivateCluster
        let runner: ComposeRunner
        let server: UInt16
    }

    @Test(.timeLimit(.minutes(8)))
    func `what is started becomes well, fills the demo, checks it, and heals when a volume is lost`() async throws {
        try await withEngine(production: false) { engine in
            for lost in ["nothing", "database", "state"] {
                switch lost {
                case "database": try await makeDatabase(of: engine, replacing: true)
                case "state":
                    for name in try FileManager.default.contentsOfDirectory(atPath: engine.folder) {
                        try FileManager.default.removeItem(atPath: "\(engine.folder)/\(name)")
                    }
                default: break
                }
                try await engine.runner.up(withoutStarting: ["postgres"])
                try await everybodyIsChecked(in: engine)
                #expect(
                    try await number("SELECT count(*) FROM ledger.app_budget WHERE paused_until > now()", engine) == 0)
                let key = try String(contentsOfFile: "\(engine.folder)/api-key", encoding: .utf8)
                let asked = try await engine.runner.run(
                    [
                        "curl", "--fail", "--silent", "--header",
                        "Authorization: Bearer \(key.trimmingCharacters(in: .newlines))",
                        "http://127.0.0.1:\(engine.server)/v1/apps/com.example.journal/customers/c1000048/entitlements",
                    ], in: "serve")
                #expect(asked == 0, "the key of the demo is refused after the loss of \(lost)")
                try await stop(["worker", "serve", "devices", "simulator"], of: engine.runner)
            }
        }
    }

    @Test(.timeLimit(.minutes(2)))
    func `what is for production starts without a simulator, and stops when asked to`() async throws {
        try await withEngine(production: true) { engine in
            try await engine.runner.up(withoutStarting: ["postgres"])
            #expect(try await number("SELECT count(*) FROM ledger.receipt", engine) == 0)
            try await stop(["worker", "serve"], of: engine.runner)
        }
    }

    @Test func `the pretend lives go on where they stood when the simulator starts again`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "compose-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let port = try freePort()
        let file = try ComposeFile(replacing: Self.places(folder) + [("8090", "\(port)")])
        var epochs: [String] = []
        for isImported in [false, false, true] {
            if isImported { try Data().write(to: URL(filePath: "\(folder)/imported")) }
            // There is no database to ask.
            let runner = ComposeRunner(file: file, folder: folder, further: ["DATABASE_URL": "nonsense"])
            try await runner.complete("secrets")
            try await runner.start("simulator")
            epochs.append(try String(contentsOfFile: "\(folder)/epoch", encoding: .utf8))
            let status = try await runner.stop("simulator")
            #expect(status == 0)
            try await Task.sleep(for: .seconds(1.1))
        }
        #expect(epochs[0] != epochs[1], "without their receipts in the database the lives begin anew")
        #expect(epochs[1] == epochs[2])
    }

    private static func places(_ folder: String) -> [(String, String)] {
        [
            ("/var/lib/perennial", folder), ("/usr/share/perennial/scripts", "\(ComposeFile.root.path)/scripts"),
            ("/run/secrets/", "\(ComposeFile.root.path)/docs/examples/"),
        ]
    }

    /// Runs `body` with a machine of its own for the services.
    private func withEngine(production: Bool, _ body: (Engine) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "compose-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let cluster = try await PrivateCluster()
        try await cluster.start()
        let (simulator, server) = (try freePort(), try freePort())
        let metrics = try freePort()
        let file = try ComposeFile(
            production: production,
            replacing: Self.places(folder) + [
                ("PGHOST: postgres", "PGHOST: \(cluster.directory)"), ("9464", "\(metrics)"),
                ("//simulator:8090", "//127.0.0.1:\(simulator)"), ("8090", "\(simulator)"),
                (":8080/", ":\(server)/"), ("--host 127.0.0.1", "--host \(cluster.directory)"),
            ])
        let runner = ComposeRunner(file: file, folder: folder, further: ["PERENNIAL_HTTP_PORT": "\(server)"])
        let engine = Engine(folder: folder, cluster: cluster, runner: runner, server: server)
        do {
            try await makeDatabase(of: engine)
            try await body(engine)
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

    private func stop(_ names: [String], of runner: ComposeRunner) async throws {
        for name in names {
            let status = try await runner.stop(name)
            #expect(status == 0, "\(name)")
        }
    }

    /// What the image of PostgreSQL makes of its environment.
    private func makeDatabase(of engine: Engine, replacing: Bool = false) async throws {
        let name = try #require(engine.runner.file.services["postgres"]?.environment["POSTGRES_DB"])
        let user = try #require(engine.runner.file.services["postgres"]?.environment["POSTGRES_USER"])
        let database = Database(DatabaseConfiguration(connectionString: engine.cluster.connectionString)) { print($0) }
        if replacing {
            try await database.runOutsideTransaction("DROP DATABASE \(name)")
        } else {
            try await database.runOutsideTransaction("CREATE ROLE \(user) SUPERUSER LOGIN")
        }
        try await database.runOutsideTransaction("CREATE DATABASE \(name) OWNER \(user)")
        await database.close()
    }

    /// Waits until Apple was asked about every receipt that the demo imported.
    private func everybodyIsChecked(in engine: Engine) async throws {
        let unasked = """
            SELECT CASE WHEN count(*) < 600 THEN 1 ELSE count(*) FILTER (WHERE asked_at IS NULL) END FROM ledger.receipt
            """
        while try await number(unasked, engine) > 0 { try await Task.sleep(for: .milliseconds(200)) }
    }

    private func number(_ sql: String, _ engine: Engine) async throws -> Int64 {
        let address = "host=\(engine.cluster.directory) dbname=perennial user=perennial"
        let database = Database(DatabaseConfiguration(connectionString: address)) { print($0) }
        let rows = try await database.query(Statement(name: "number", sql: "SELECT (\(sql))::bigint AS n"))
        await database.close()
        return try rows[0].int8("n")
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
