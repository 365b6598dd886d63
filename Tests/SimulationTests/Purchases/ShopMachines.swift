import Foundation
import Postgres
import TestSupport

/// The machines of a shop: App Store, server, worker and database, which die one at a time and come back.
actor ShopMachines {
    static let monthSeconds = 60
    static let leaseSeconds = 4
    /// Where `/simulator` is.
    nonisolated let store: String
    nonisolated let cluster: PrivateCluster
    private nonisolated let simulator: PerennialProcess
    private nonisolated let environment: [String: String]
    private var server: PerennialProcess
    private var worker: PerennialProcess
    /// Where the server listens.
    private(set) var address: String
    private var lastKill: Task<Void, any Error>?

    struct Ended: Error, CustomStringConvertible {
        let description: String
    }

    /// Starts server and worker; the database is there and has its app.
    init(cluster: PrivateCluster, simulator: PerennialProcess, store: String, environment: [String: String])
        async throws
    {
        (self.cluster, self.simulator, self.store, self.environment) = (cluster, simulator, store, environment)
        server = try PerennialProcess(["serve"], environment: environment)
        address = try await Self.address(of: server)
        worker = try PerennialProcess(["worker"], environment: environment)
    }

    /// Kills one of them and starts it again; others who want a kill wait.
    func kill(_ kill: Kill) async throws {
        let before = lastKill
        let task = Task {
            try await before?.value
            try await replace(kill)
        }
        lastKill = task
        try await task.value
    }

    private func replace(_ kill: Kill) async throws {
        switch kill.victim {
        case .client: break
        case .server:
            try await end(server)
            server = try PerennialProcess(["serve"], environment: environment)
            address = try await Self.address(of: server)
        case .worker:
            try await end(worker)
            worker = try PerennialProcess(["worker"], environment: environment)
        case .database:
            if kill.stopsDatabase {
                try await cluster.stop(immediate: true)
                try await cluster.start()
            } else {
                try await endSessions()
            }
        }
    }

    private func endSessions() async throws {
        let database = Database(DatabaseConfiguration(connectionString: cluster.connectionString, writeConnections: 1))
        {
            _ in
        }
        try await database.transaction {
            try $0.script(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
                """)
        }
        await database.close()
    }

    private func end(_ process: PerennialProcess) async throws {
        guard process.process.isRunning else { throw Ended(description: "a process ended itself: \(process.said)") }
        process.kill()
        _ = await process.end()
        try process.forget()
    }

    private static func address(of process: PerennialProcess) async throws -> String {
        guard let address = try await process.address() else {
            throw Ended(description: "a server ended: \(process.said)")
        }
        return address
    }

    /// Runs a command to its end.
    nonisolated func run(_ arguments: [String]) async throws -> (status: Int32, said: String) {
        let process = try PerennialProcess(arguments, environment: environment)
        let status = await process.end()
        let said = process.said
        try process.forget()
        return (status, said)
    }

    /// Ends all processes; the cluster stays.
    func stop() async {
        for process in [server, worker, simulator] {
            process.kill()
            _ = await process.end()
        }
    }
}
