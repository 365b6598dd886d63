import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Subscriptions

extension World {
    /// A migrated ledger whose app is asked about at the pretend App Store without a limit of calls.
    func migrateAndRegister() async throws {
        try await run(["migrate"])
        let secret = FileManager.default.temporaryDirectory.appending(path: "perennial-benchmark-secret")
        try Self.secret.write(to: secret, atomically: true, encoding: .utf8)
        try await addApp(Self.app.text)
    }

    /// Adds an app that is asked about without a limit of calls.
    func addApp(_ bundleID: String) async throws {
        let secret = FileManager.default.temporaryDirectory.appending(path: "perennial-benchmark-secret").path
        try await run(["app", "add", "--bundle-id", bundleID, "--shared-secret-file", secret, "--rate", "0"])
    }

    /// Starts a pretend App Store whose customers stay as they are, unless they do not stand still; `nice` lowers its
    /// priority, for Apple's machines are elsewhere.
    func startSimulator(
        customers: Int, isStill: Bool = true, arguments: [String] = [], nice: Int = 0
    ) async throws {
        let secret = FileManager.default.temporaryDirectory.appending(path: "perennial-benchmark-secret").path
        try start(
            "simulator",
            [
                "simulator", "--port", "\(Self.simulatorPort)", "--customers", "\(customers)", "--sandbox-customers",
                "0", "--arrivals-per-month", "0", "--month-seconds", "2592000", "--shared-secret-file", secret,
            ] + (isStill ? ["--still"] : []) + arguments, nice: nice)
        for _ in 0..<100 {
            if (try? await fetch("/simulator/receipts?from=0&count=1")) != nil { return }
            try await Task.sleep(for: .milliseconds(100))
        }
        throw Failed(arguments: ["simulator"])
    }

    /// Writes the receipts of the simulator's customers to a file of lines.
    func saveReceipts() async throws -> URL {
        let file = FileManager.default.temporaryDirectory.appending(path: "perennial-benchmark.ndjson")
        try await fetch("/simulator/receipts?format=ndjson").write(to: file)
        return file
    }

    /// Makes every scheduled receipt up to one due an hour ago, and tidies the tables as autovacuum does within a minute,
    /// so that every run begins alike.
    func makeEverythingDue(upTo receipt: Int64 = .max) async throws {
        try await sql(
            """
            UPDATE ledger.poll_schedule SET due_at = now() - interval '1 hour', scheduled_for = now() - interval '1 hour'
            WHERE receipt_id <= \(receipt)
            """)
        try psql([connectionString, "--command", "VACUUM ANALYZE"])
    }

    /// Lets every subscription count as summed up for the reports, which after an import takes a worker minutes: what that
    /// costs is not what is measured here.
    func skipSummaries() async throws {
        try await sql(
            """
            UPDATE ledger.summary_progress
            SET rounds = 1, position = (SELECT COALESCE(max(f.position), 0) FROM ledger.event_feed f),
                price_mark = (
                    SELECT md5(COALESCE(string_agg(m.price_mark::text, ',' ORDER BY m.app_id), ''))::uuid
                    FROM ledger.price_mark m)
            """)
    }

    /// Receipts that are scheduled, up to one.
    func scheduledReceipts(upTo receipt: Int64 = .max) async throws -> Int {
        Int(try await number("SELECT count(*) AS number FROM ledger.poll_schedule WHERE receipt_id <= \(receipt)"))
    }

    /// Receipts that are due now.
    func dueReceipts() async throws -> Int {
        Int(try await number("SELECT count(*) AS number FROM ledger.poll_schedule WHERE due_at <= now()"))
    }

    /// Stores so many receipts that are asked about some other day, without waiting for the disk.
    func store(others: Int) async throws {
        func waitForDisk(_ isOn: Bool) throws {
            try psql([
                connectionString, "--output=/dev/null", "--command", "ALTER SYSTEM SET fsync = \(isOn ? "on" : "off")",
                "--command", "SELECT pg_reload_conf()",
            ])
        }
        try waitForDisk(false)
        try psql([
            connectionString, "--set=others=\(others)", "--file", "\(try Self.value("BENCHMARKS"))/lib/fill_beside.sql",
        ])
        try waitForDisk(true)
    }

    /// Has a customer of the running store do something.
    func act(_ action: String, as customer: String) async throws {
        _ = try await fetch("/simulator/customers/\(customer)/actions", posting: #"{"action":"\#(action)"}"#)
    }

    /// Lets every answer of the running store come later.
    func delayAnswers(milliseconds: Int) async throws {
        let fault = #"{"kind":"slow","seconds":\#(Double(milliseconds) / 1000)}"#
        _ = try await fetch("/simulator/faults", posting: fault)
    }

    private func fetch(_ path: String, posting body: String? = nil) async throws -> Data {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(Self.simulatorPort)\(path)")
        if let body {
            request.method = .POST
            request.body = .bytes(ByteBuffer(string: body))
        }
        let response = try await HTTPClient.shared.execute(request, timeout: .minutes(2))
        guard (200..<300).contains(response.status.code) else { throw Failed(arguments: [path]) }
        return Data(try await response.body.collect(upTo: 4 << 30).readableBytesView)
    }
}
