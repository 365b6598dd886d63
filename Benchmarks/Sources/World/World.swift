import Foundation
import Postgres
import Subscriptions
import Tracking

/// What every benchmark runs in: a database of its own, the product's executable, a pretend App Store.
final class World: @unchecked Sendable {
    static let app: BundleID = "com.example.tracker"
    static let secret = "0123456789abcdef0123456789abcdef"
    static let simulatorPort = 8_191

    /// The product's executable.
    let executable: String
    let connectionString: String
    private(set) var database: Database
    private(set) var ledger: SubscriptionLedger
    private let postmaster: Int32
    private var running: [String: LongProcess] = [:]
    /// Further variables of the product's environment.
    var settings: [String: String] = [:]

    /// Runs `body` in a migrated ledger of its own, then ends every process that it started.
    static func with(_ body: (World) async throws -> Void) async throws {
        let world = try World(connectionString: value("DATABASE_URL"))
        defer { for name in Array(world.running.keys) { world.stop(name) } }
        try await world.migrateAndRegister()
        try await body(world)
    }

    /// Reads where the rest is from the environment that `Benchmarks/run` sets.
    private init(connectionString: String) throws {
        executable = try Self.value("PERENNIAL")
        self.connectionString = connectionString
        postmaster = Int32(try Self.value("POSTMASTER")) ?? 0
        (database, ledger) = try Self.open(connectionString)
    }

    /// A variable of the environment.
    static func value(_ name: String) throws -> String {
        guard let value = ProcessInfo.processInfo.environment[name] else { throw Missing(name: name) }
        return value
    }

    /// The same ledger with so many connections for transactions.
    func ledger(writeConnections: Int) throws -> SubscriptionLedger {
        try Self.open(connectionString, writeConnections: writeConnections).1
    }

    private static func open(
        _ connectionString: String, writeConnections: Int = 4
    ) throws -> (Database, SubscriptionLedger) {
        guard let key = Data(base64Encoded: try value("PERENNIAL_MASTER_KEY")) else {
            throw Missing(name: "PERENNIAL_MASTER_KEY")
        }
        let database = Database(
            DatabaseConfiguration(connectionString: connectionString, writeConnections: writeConnections)
        ) { print($0) }
        return (database, SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: [UInt8](key))))
    }

    /// The same ledger once more, in another database beside this one; both go on with the same App Store.
    func copy(named name: String) async throws -> World {
        // PostgreSQL copies a database only while no session is connected to it.
        await database.close()
        guard let slash = connectionString.lastIndex(of: "/") else { throw Missing(name: "DATABASE_URL") }
        let server = connectionString[...slash]
        let original = connectionString[connectionString.index(after: slash)...]
        try psql(["\(server)postgres", "--command", "CREATE DATABASE \(name) TEMPLATE \(original)"])
        (database, ledger) = try Self.open(connectionString)
        return try World(connectionString: server + name)
    }

    /// Runs psql, for what does not run inside a transaction.
    func psql(_ arguments: [String]) throws {
        try client("psql", ["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1"] + arguments)
    }

    /// Runs a program of PostgreSQL's to its end; what it prints on the way is left out.
    func client(_ program: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed(arguments: [program] + arguments) }
    }

    /// A variable that is not set.
    struct Missing: Error, CustomStringConvertible {
        let name: String
        var description: String { "\(name) is not set: start the benchmarks by Benchmarks/run." }
    }

    /// Seconds of processor time used so far, by process.
    func processorSeconds() -> [String: Double] {
        var seconds = running.mapValues { ProcessTimes.seconds(ofTree: $0.identifier) }
        // The processes that go on are children of this one, which are part of its tree.
        let others = seconds.values.reduce(0, +)
        seconds["benchmark"] = ProcessTimes.seconds(ofTree: ProcessInfo.processInfo.processIdentifier) - others
        seconds["postgres"] = ProcessTimes.seconds(ofTree: postmaster)
        return seconds
    }

    /// The environment of the product's processes.
    private var environment: [String: String] {
        let store = "http://127.0.0.1:\(Self.simulatorPort)"
        return ProcessInfo.processInfo.environment.merging(
            [
                "PERENNIAL_APPSTORE_URL": "\(store)/verifyReceipt",
                "PERENNIAL_APPSTORE_SANDBOX_URL": "\(store)/sandbox/verifyReceipt",
                "DATABASE_URL": connectionString,
            ].merging(settings) { _, new in new }
        ) { _, new in new }
    }

    /// Starts a process, of the product unless `program` is another one, that goes on until `stop`; `nice` lowers its
    /// priority.
    func start(_ name: String, _ arguments: [String], program: String? = nil, nice: Int = 0) throws {
        running[name] = try LongProcess(program ?? executable, arguments, environment: environment, nice: nice)
    }

    /// Lets a running process and this one have a processor before all others; what they start has none of it. False where
    /// that is not permitted.
    func giveRealTime(priority: Int, to name: String) throws -> Bool {
        try [getpid(), running[name]?.identifier].compactMap(\.self).allSatisfy { process in
            let chrt = Process()
            chrt.executableURL = URL(filePath: "/usr/bin/env")
            chrt.arguments = ["chrt", "--all-tasks", "--reset-on-fork", "--rr", "--pid", "\(priority)", "\(process)"]
            try chrt.run()
            chrt.waitUntilExit()
            return chrt.terminationStatus == 0
        }
    }

    /// Ends a process.
    func stop(_ name: String) { running.removeValue(forKey: name)?.end(by: SIGTERM) }

    /// Kills a process at once.
    func kill(_ name: String) { running.removeValue(forKey: name)?.end(by: SIGKILL) }

    /// The most memory that a running process has held, in megabytes.
    func peakMegabytes(_ name: String) -> Double? {
        running[name].flatMap { ProcessTimes.peakMegabytes(of: $0.identifier) }
    }

    /// Runs a command of the product to its end; what it printed. Its processor time counts as the benchmark's.
    @discardableResult
    func run(_ arguments: [String]) async throws -> String {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: executable)
        process.arguments = arguments
        process.environment = environment
        process.standardOutput = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed(arguments: arguments) }
        return String(decoding: data, as: UTF8.self)
    }

    /// A command that did not end well.
    struct Failed: Error, CustomStringConvertible {
        let arguments: [String]
        var description: String { "\(arguments.joined(separator: " ")) failed; its lines above say why." }
    }

    /// The column `number` of a query's only row.
    func number(_ sql: String) async throws -> Int64 {
        try await database.query(Statement(name: "n\(sql.hashValue)", sql: sql)).first?.int8("number") ?? 0
    }

    /// Runs SQL.
    func sql(_ script: String) async throws {
        try await database.transaction { try $0.script(script) }
    }
}
