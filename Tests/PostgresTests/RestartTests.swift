import Postgres
import Synchronization
import TestSupport
import Testing

@Suite("Work goes on after the server crashes under load") struct RestartTests {
    @Test("Work goes on after a restart", .timeLimit(.minutes(3)), arguments: [true, false])
    func workGoesOnAfterARestart(_ immediate: Bool) async throws {
        let cluster = try await PrivateCluster()
        try await cluster.start()
        let database = Database(
            DatabaseConfiguration(connectionString: cluster.connectionString, connectTimeoutSeconds: 2)
        ) { print("restart: \($0)") }
        try await database.script("CREATE TABLE kept (id int8 PRIMARY KEY)")
        let load = Load()

        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { await load.write(to: database) }
                group.addTask { await load.read(from: database) }
            }
            group.addTask {
                defer { load.stop() }
                for _ in 0..<2 {
                    try await load.awaitProgress()
                    try await cluster.stop(immediate: immediate)
                    try await Task.sleep(for: .milliseconds(700))
                    try await cluster.start()
                }
                try await load.awaitProgress()
            }
            try await group.waitForAll()
        }

        let seen = load.seen
        let kept = Set(try await database.ask("SELECT id FROM kept").map { try $0.int8("id") })
        #expect(seen.acknowledged.isSubset(of: kept), "an acknowledged write was lost")
        #expect(seen.refused.isDisjoint(with: kept), "a write reported as not done was done")
        #expect(seen.surprises == [])
        print("restart: \(kept.count) kept, \(seen.acknowledged.count) acknowledged, \(seen.refused.count) refused")
        await database.close()
        try await cluster.stop(immediate: true)
        try await cluster.remove()
    }

    @Test(
        "However many connections rest, a caller hears soon that the server is gone, and the next one that it is back",
        .timeLimit(.minutes(1)), arguments: [1, 2, 4])
    func connectionsThatRest(_ opened: Int) async throws {
        let cluster = try await PrivateCluster()
        try await cluster.start()
        let database = Database(
            DatabaseConfiguration(
                connectionString: cluster.connectionString, writeConnections: 4, connectTimeoutSeconds: 1)
        ) { print("rest: \($0)") }
        let work = Statement(name: "work", sql: "SELECT pg_sleep(0.3)")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<opened { group.addTask { _ = try await database.transaction { try $0.execute(work) } } }
            try await group.waitForAll()
        }
        try await cluster.stop(immediate: true)
        for _ in 0..<5 {
            let start = ContinuousClock.now
            #expect(await databaseError { _ = try await database.change("SELECT 1") }?.kind == .cannotConnect)
            #expect(ContinuousClock.now - start < .seconds(5))
        }
        try await cluster.start()
        _ = try await database.change("SELECT 1")
        await database.close()
        try await cluster.stop(immediate: true)
        try await cluster.remove()
    }
}

/// Reads and writes without end, and what became of them.
private final class Load: Sendable {
    struct Seen {
        var isStopped = false
        var lastId: Int64 = 0
        var acknowledged: Set<Int64> = []
        var refused: Set<Int64> = []
        var reads = 0
        var surprises: [String] = []
    }

    private let memory = Mutex(Seen())

    var seen: Seen { memory.withLock { $0 } }

    func stop() { memory.withLock { $0.isStopped = true } }

    func write(to database: Database) async {
        let insert = Statement(name: "insert", sql: "INSERT INTO kept VALUES ($1)")
        while let id = nextId() {
            do {
                _ = try await database.transaction { try $0.execute(insert, [.int8(id)]) }
                memory.withLock { _ = $0.acknowledged.insert(id) }
            } catch {
                note(error, writing: id)
            }
        }
    }

    func read(from database: Database) async {
        let count = Statement(name: "count", sql: "SELECT count(*) AS n FROM kept")
        while !seen.isStopped {
            do throws(DatabaseError) {
                _ = try await database.query(count)
                memory.withLock { $0.reads += 1 }
            } catch {
                note(error, writing: nil)
            }
        }
    }

    /// Waits until both reads and writes have succeeded some more.
    func awaitProgress() async throws {
        let before = seen
        while seen.acknowledged.count < before.acknowledged.count + 50 || seen.reads < before.reads + 50 {
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private func nextId() -> Int64? {
        memory.withLock { memory in
            memory.lastId += 1
            return memory.isStopped ? nil : memory.lastId
        }
    }

    /// An outage may refuse work or leave a commit unknown; nothing else may happen.
    private func note(_ error: any Error, writing id: Int64?) {
        memory.withLock { memory in
            switch (error as? DatabaseError)?.kind {
            case .connectionLost, .cannotConnect: if let id { memory.refused.insert(id) }
            case .commitUnknown where id != nil: break
            case .commitUnknown, .server, .timedOut, .queueFull, .closed, .cancelled, .decoding, nil:
                memory.surprises.append("\(error)")
            }
        }
    }
}
