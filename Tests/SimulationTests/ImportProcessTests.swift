import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

@Suite("Imports survive kills and run side by side")
struct ImportProcessTests {
    @Test("An import killed again and again goes on where it was, and stores every line once")
    func killed() async throws {
        try await ImportWorld.with { world in
            let file = try world.file(named: "killed.ndjson", lines: 1...30_000)
            for limit in [1, 5_000, 12_000] {
                let running = try world.start([file])
                while try await world.stored() < limit, running.process.isRunning {
                    try await Task.sleep(for: .milliseconds(5))
                }
                kill(running.process.processIdentifier, SIGKILL)
                _ = await running.said()
            }
            let killedAt = try await world.stored()
            let last = try await world.start([file]).said()
            #expect(last.status == 0, "\(last.text)")
            #expect(last.text.contains("killed.ndjson after line ") || killedAt == 30_000, "\(last.text)")
            #expect(try await world.counts() == [30_000, 30_000, 30_000, 30_000])
            let again = try await world.start([file]).said()
            #expect(again.status == 0, "\(again.text)")
            let end = try #require(again.text.split(whereSeparator: \.isNewline).last, "\(again.text)")
            #expect(end.hasPrefix("30000 lines of \(file) were skipped: "), "\(again.text)")
            let whole = try await world.start(["--again", file]).said()
            #expect(whole.text.contains("30000 (0 new, 30000 known before)"), "\(whole.text)")
            #expect(!whole.text.contains("skipped"), "\(whole.text)")
            #expect(try await world.counts() == [30_000, 30_000, 30_000, 30_000])
            let operations = SubscriptionLedger(database: world.database).operations
            try await operations.expectNoViolations(otherwise: VerifyTerms(leaseSeconds: 60, speedup: 1))
        }
    }

    @Test(
        "After an erasure the same import says what it skips, and brings the customer back only with --again",
        arguments: [[], ["nonsense"]])
    func erased(bad: [String]) async throws {
        try await ImportWorld.with { world in
            let file = try world.file(named: "erased.ndjson", [world.line(1)] + bad + [world.line(2)])
            #expect(try await world.start([file]).said().status == 0)
            let ledger = SubscriptionLedger(database: world.database)
            let decision = try ManualDecision(by: "kim", because: "asked")
            _ = try await ledger.customers.erase("customer 1", of: "com.example.app", deciding: decision)
            let uploads = { try await world.counts()[2] }
            #expect(try await uploads() == 1)
            let again = try await world.start([file]).said()
            #expect(again.status == 0 && again.text.contains("2 lines of \(file) were skipped: "), "\(again.text)")
            #expect(try await uploads() == 1)
            let whole = try await world.start(["--again", file]).said()
            #expect(whole.text.contains("2 (1 new, 1 known before)"), "\(whole.text)")
            #expect(try await uploads() == 2)
        }
    }

    @Test("Imports of one file and of files with common lines run at once")
    func atOnce() async throws {
        try await ImportWorld.with { world in
            let one = try world.file(named: "one.ndjson", lines: 1...8_000)
            let other = try world.file(named: "other.ndjson", lines: (4_001...12_000).reversed())
            let running = try [one, one, other].map { try world.start([$0]) }
            for process in running {
                let end = await process.said()
                #expect(end.status == 0 && end.text.contains("bad: 0;"), "\(end.text)")
            }
            #expect(try await world.counts() == [12_000, 12_000, 12_000, 12_000])
        }
    }

    @Test("Bad lines are listed with their number, and read again with the same file; nothing stored is status 1")
    func badLines() async throws {
        try await ImportWorld.with { world in
            let bad = "{\"app\":\"com.unknown\",\"customer\":\"c\",\"receipt\":\"MIIB\"}"
            let file = try world.file(named: "mixed.ndjson", [world.line(1), bad, "nonsense", world.line(2)])
            for known in 0...1 {
                let end = try await world.start([file]).said()
                #expect(end.status == 0)
                #expect(end.text.contains("line 2: No app has the bundle id com.unknown"), "\(end.text)")
                #expect(end.text.contains("line 3: this is text that is not JSON"))
                #expect(end.text.contains("\(known == 0 ? 2 : 0) new, 0 known before"), "\(end.text)")
                #expect(end.text.contains("2 lines of \(file) were skipped: ") == (known == 1), "\(end.text)")
            }
            #expect(try await world.start([try world.file(named: "bad.ndjson", ["nonsense"])]).said().status == 1)
        }
    }
}

extension ImportProcessTests {
    @Test("A line's claim is shown as provisional, by the command line as everywhere")
    func provisional() async throws {
        try await ImportWorld.with { world in
            let promise = #","product":"monthly","provisional_until":"2099-01-01T00:00:00Z"}"#
            let file = try world.file(named: "promised.ndjson", [String(world.line(1).dropLast()) + promise])
            #expect(try await world.start([file]).said().status == 0)
            let asked = ["--app", "com.example.app", "--customer", "customer 1", "--format", "csv"]
            let reported = try await world.start(asked, command: "entitlements").said()
            let row = try #require(reported.text.split(whereSeparator: \.isNewline).last, "\(reported.text)")
            #expect(
                row.hasPrefix("monthly,yes,2") && row.hasSuffix("Z,monthly,active,,Production,provisional,,,"), "\(row)"
            )
        }
    }
}

/// A database with one app, and files to import there.
private struct ImportWorld {
    let database: Database
    let connectionString: String
    let folder: URL

    static func with(_ body: (ImportWorld) async throws -> Void) async throws {
        try await withMigratedDatabase { database, connectionString in
            let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: PretendWorld.masterKey))
            try await ledger.apps.add("com.example.app", secret: "secret", callsPerSecond: 0)
            let folder = FileManager.default.temporaryDirectory.appending(path: "perennial-\(UUID())")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            try await body(ImportWorld(database: database, connectionString: connectionString, folder: folder))
        }
    }

    /// The line of a customer with one receipt, both made from a number.
    func line(_ number: Int) -> String {
        let bytes = [0x30, 0x82, 0x01, 0x00] + Array("receipt \(number)".utf8) + [UInt8](repeating: 7, count: 128)
        let receipt = Data(bytes).base64EncodedString()
        return #"{"app":"com.example.app","customer":"customer \#(number)","receipt":"\#(receipt)"}"#
    }

    func file(named name: String, lines: some Sequence<Int>) throws -> String {
        try file(named: name, lines.map(line))
    }

    /// The path of a new file of these lines.
    func file(named name: String, _ lines: [String]) throws -> String {
        let url = folder.appending(path: name)
        try Data(lines.joined(separator: "\n").utf8).write(to: url)
        return url.path
    }

    func start(_ arguments: [String], command: String = "import") throws -> RunningCommand {
        try RunningCommand([command] + arguments, connectionString: connectionString)
    }

    func stored() async throws -> Int {
        try await counts()[0]
    }

    /// Receipts, customers, uploads and schedules.
    func counts() async throws -> [Int] {
        let sql = """
            SELECT (SELECT count(*) FROM ledger.receipt) AS receipts, (SELECT count(*) FROM ledger.customer) AS customers,
                   (SELECT count(*) FROM ledger.upload) AS uploads, (SELECT count(*) FROM ledger.poll_schedule) AS schedules
            """
        let row = try #require(try await database.query(Statement(name: "import_counts", sql: sql)).first)
        return try ["receipts", "customers", "uploads", "schedules"].map { Int(try row.int8($0)) }
    }
}

/// A command of `perennial` as a process of its own.
private struct RunningCommand {
    let process = Process()
    private let output = Pipe()

    init(_ arguments: [String], connectionString: String) throws {
        process.executableURL = PretendWorld.productsFolder.appendingPathComponent("perennial")
        process.arguments = arguments
        process.environment = [
            "DATABASE_URL": connectionString,
            "PERENNIAL_MASTER_KEY": Data(PretendWorld.masterKey).base64EncodedString(),
        ]
        process.standardOutput = output
        process.standardError = output
        try process.run()
    }

    /// Waits for its end, and tells what it said until then.
    func said() async -> (status: Int32, text: String) {
        let text = await output.fileHandleForReading.textToEnd()
        return (await process.ended(), text)
    }
}
