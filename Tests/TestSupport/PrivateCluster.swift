import Foundation
import NIOCore
import NIOPosix
import Postgres

/// A PostgreSQL cluster of its own, for tests that stop and start the server. It lives in the temporary folder, listens on
/// a socket, with a certificate on a port of this machine too, and trusts everyone who can reach that.
package actor PrivateCluster {
    /// A libpq keyword string for its database `postgres`.
    package nonisolated let connectionString: String
    /// Where its socket is.
    package nonisolated let directory: String
    /// The port of its address and of its socket's name.
    package nonisolated let port: Int
    /// The same by name over TCP, where it listens only with a certificate; without `sslmode`.
    package nonisolated let networkConnectionString: String
    private let programs: String
    private let folder: ServerFolder
    private var certificateSettings: [String] = []
    private var server: Process?
    /// The processes that `freeze` stopped.
    private var frozen: [Int32] = []

    /// Makes the cluster; it is not started yet. With a certificate and its key in PEM form it speaks TLS.
    package init(certificate: String? = nil, key: String? = nil) async throws {
        let port = certificate == nil ? 5432 : try await Self.freePort()
        try self.init(empty: ServerFolder(prefix: "pt"), port: port)
        if let certificate, let key {
            certificateSettings = [
                "listen_addresses=127.0.0.1", "ssl=on",
                "ssl_cert_file=\(try folder.write(certificate, to: "server.crt"))",
                "ssl_key_file=\(try folder.write(key, to: "server.key"))",
            ]
        }
        let options = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        try await run("initdb", ["-D", data] + options)
    }

    /// Makes a hot standby of a running cluster, which follows it once it is started.
    package init(following primary: PrivateCluster) async throws {
        try self.init(empty: ServerFolder(prefix: "ps"))
        let source = ["-h", primary.directory, "-U", "postgres", "-X", "stream", "--checkpoint=fast", "--no-sync"]
        try await run("pg_basebackup", ["-D", data, "--write-recovery-conf"] + source)
    }

    private init(empty folder: ServerFolder, port: Int = 5432) throws {
        self.folder = folder
        self.port = port
        programs = try Self.findPrograms()
        directory = folder.path
        connectionString = "host=\(directory) port=\(port) user=postgres dbname=postgres"
        networkConnectionString = "host=localhost hostaddr=127.0.0.1 port=\(port) user=postgres dbname=postgres"
    }

    /// A port of this machine on which nothing listens at the moment.
    private static func freePort() async throws -> Int {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = channel.localAddress?.port ?? 0
        try await channel.close()
        return port
    }

    /// Starts the server and waits until it answers. Commits are flushed, so that an immediate stop loses none.
    package func start() async throws {
        // A child and not a daemon: Foundation notices the end of a child only when all that it started have ended too.
        let settings =
            ["port=\(port)", "listen_addresses=", "unix_socket_directories=\(directory)", "max_connections=40"]
            + certificateSettings
        let process = folder.process("\(programs)/postgres", ["-D", data] + settings.flatMap { ["-c", $0] })
        try process.run()
        server = process
        for _ in 0..<600 {
            if try isReady(process.processIdentifier) { return }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw TestSupportError("The private server in \(directory) does not answer after 30 seconds.")
    }

    /// Stops the server: at once, as in a crash, or after telling its sessions.
    package func stop(immediate: Bool) async throws {
        guard let server else { return }
        kill(server.processIdentifier, immediate ? SIGQUIT : SIGINT)
        while server.isRunning { try await Task.sleep(for: .milliseconds(10)) }
        self.server = nil
    }

    /// Stops all of its processes where they are, as a machine that hangs: they take connections and bytes, and answer
    /// nothing until `thaw`.
    package func freeze() async throws {
        guard let server else { return }
        let others = Statement(
            name: "others", sql: "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { _ in }
        frozen = [server.processIdentifier] + (try await database.query(others).map { try $0.int4("pid") })
        await database.close()
        for process in frozen { kill(process, SIGSTOP) }
    }

    /// Lets its processes go on.
    package func thaw() {
        for process in frozen { kill(process, SIGCONT) }
        frozen = []
    }

    /// Removes the stopped cluster's files.
    package func remove() throws {
        try folder.remove()
    }

    /// The server writes its process id and, on the last line, its status into a file once it is up.
    private func isReady(_ identifier: Int32) throws -> Bool {
        let path = "\(data)/postmaster.pid"
        guard FileManager.default.fileExists(atPath: path) else { return false }
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        return lines.first == "\(identifier)" && lines.last?.hasPrefix("ready") == true
    }

    private var data: String { "\(directory)/data" }

    private func run(_ program: String, _ arguments: [String]) async throws {
        try await folder.run("\(programs)/\(program)", arguments)
    }

    /// On the search path, else the newest that Debian keeps off it.
    static func findPrograms() throws -> String {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let debian = "/usr/lib/postgresql"
        let versions =
            FileManager.default.fileExists(atPath: debian)
            ? try FileManager.default.contentsOfDirectory(atPath: debian) : []
        let newestFirst = versions.compactMap(Int.init).sorted(by: >).map { "\(debian)/\($0)/bin" }
        let folders = path.split(separator: ":").map(String.init) + newestFirst
        guard let found = folders.first(where: { FileManager.default.isExecutableFile(atPath: "\($0)/initdb") }) else {
            throw TestSupportError("initdb was not found: install the PostgreSQL server (Debian: postgresql).")
        }
        // A link to a single program does not lead to its companions.
        return URL(fileURLWithPath: "\(found)/initdb").resolvingSymlinksInPath().deletingLastPathComponent().path
    }
}
