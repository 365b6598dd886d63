import Foundation

/// A PgBouncer of its own in front of a cluster, pooling by transaction, for tests that share few sessions among many.
package final class PrivatePooler: Sendable {
    /// What it does with the start-up parameter `options`, which it does not know.
    package enum Options: String, Sendable, CaseIterable {
        /// PgBouncer's default: it refuses a client that sends the parameter.
        case refused
        /// As poolers are usually set up for clients that always send it.
        case ignored
    }

    /// Whether there is one on this machine.
    package static let isInstalled = program != nil
    private static let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    private let folder: ServerFolder
    private let process: Process

    /// Starts one with a number of sessions for each database, and waits until it listens.
    package init(before cluster: PrivateCluster, sessions: Int, options: Options) async throws {
        guard let program = Self.program else {
            throw TestSupportError("pgbouncer was not found: install it (Debian: pgbouncer).")
        }
        folder = try ServerFolder(prefix: "pb")
        let settings = """
            [databases]
            * = host=\(cluster.directory) user=postgres
            [pgbouncer]
            listen_addr =
            listen_port = 6432
            unix_socket_dir = \(folder.path)
            logfile = \(folder.path)/log
            auth_type = any
            pool_mode = transaction
            default_pool_size = \(sessions)
            max_client_conn = 200
            \(options == .ignored ? "ignore_startup_parameters = options" : "")
            """
        let file = "\(folder.path)/pgbouncer.ini"
        try settings.write(toFile: file, atomically: false, encoding: .utf8)
        process = folder.process(program, [file])
        try process.runHearingSignals()
        for _ in 0..<600 {
            if FileManager.default.fileExists(atPath: "\(folder.path)/.s.PGSQL.6432") { return }
            guard process.isRunning else { break }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw TestSupportError("The private pgbouncer in \(folder.path) does not listen; see \(folder.path)/log.")
    }

    /// A libpq keyword string for a database behind it.
    package func connectionString(forDatabase name: String = "postgres") -> String {
        "host=\(folder.path) port=6432 user=postgres dbname=\(name)"
    }

    /// What it wrote to its log.
    package func log() throws -> String { try String(contentsOfFile: "\(folder.path)/log", encoding: .utf8) }

    /// Stops it at once and removes its files.
    package func remove() throws {
        kill(process.processIdentifier, SIGTERM)
        process.waitUntilExit()
        try folder.remove()
    }
}
