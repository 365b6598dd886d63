import AppStore
import Foundation
import Hummingbird
import HummingbirdTesting
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("The examples of the documentation do what they say, on a live server") struct ExampleTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "docs/examples")

    private struct Finished: Sendable {
        let status: Int32
        let output: String
    }

    /// Runs a program with more environment; what it says on both streams.
    private func run(_ words: [String], _ environment: [String: String] = [:]) async throws -> Finished {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = words
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { _, new in new }
        let output = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try Data().write(to: output)
        defer { try? FileManager.default.removeItem(at: output) }
        let handle = try FileHandle(forWritingTo: output)
        process.standardOutput = handle
        process.standardError = handle
        let status = try await withCheckedThrowingContinuation { (done: CheckedContinuation<Int32, any Error>) in
            process.terminationHandler = { done.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { done.resume(throwing: error) }
        }
        return Finished(status: status, output: String(decoding: try Data(contentsOf: output), as: UTF8.self))
    }

    /// A live server that knows one verified customer, and the environment the examples ask for.
    private func serving(
        _ store: AppStoreClient = .answering(Sample.verified()),
        _ body: @escaping @Sendable (ServedLedger, [String: String]) async throws -> Void
    ) async throws {
        try await ServedLedger.with { served in
            let tracker = Tracker.quiet(served.ledger, appStore: store)
            let server = HTTPServer(
                tracker: tracker, metrics: MetricsRegistry(), host: "127.0.0.1", port: 0, logger: .quiet)
            try await server.application.test(.live) { client in
                let port = try #require(client.port)
                try await body(
                    served,
                    [
                        "PERENNIAL_URL": "http://127.0.0.1:\(port)", "PERENNIAL_KEY": served.secret,
                        "APP": "com.example.app", "CUSTOMER": "kim", "RECEIPT": Sample.receipt(),
                        "no_proxy": "127.0.0.1",
                    ])
            }
        }
    }

    @Test("The examples for curl work")
    func curl() async throws {
        try await serving { _, environment in
            let done = try await run(["bash", Self.folder.appending(path: "curl.sh").path], environment)
            #expect(done.status == 0, "\(done.output)")
            #expect(done.output.contains(#""outcome":"verified""#) && done.output.contains(#""granted":true"#))
            #expect(done.output.contains(#""customer":"stranger""#))
            #expect(done.output.contains(#""kind":"subscription.started""#))
            let wrong = environment.merging(["PERENNIAL_KEY": "perennial_x"]) { _, new in new }
            let refused = try await run(["bash", Self.folder.appending(path: "curl.sh").path], wrong)
            #expect(refused.status != 0 && refused.output.contains("unauthenticated"))
        }
    }

    @Test("The examples for Python work")
    func python() async throws {
        try await serving { _, environment in
            _ = try await run(["bash", Self.folder.appending(path: "curl.sh").path], environment)
            let cursor = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
            let more = environment.merging(["FEED_CURSOR": cursor, "ROUNDS": "1", "WAIT": "0"]) { _, new in new }
            let script = ["python3", Self.folder.appending(path: "follow.py").path]
            let done = try await run(script, more)
            #expect(done.status == 0 && done.output.contains("subscription.started kim monthly"), "\(done.output)")
            let again = try await run(script, more)
            #expect(again.status == 0 && again.output.isEmpty, "\(again.output)")
            try Data(#"{"after": 7, "feed": "00000000-0000-0000-0000-000000000000"}"#.utf8)
                .write(to: URL(filePath: cursor))
            let other = try await run(script, more)
            #expect(other.status != 0 && other.output.contains("restored"), "\(other.output)")
            try FileManager.default.removeItem(atPath: cursor)
        }
    }

    @Test("The example for credits adds what was bought, once, and subtracts what was refunded")
    func credits() async throws {
        let store = ScriptedStore(saying: PurchaseRouteTests.bought([]))
        try await serving(store.client) { served, environment in
            var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
            coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
            try await served.ledger.apps.applyCatalog([coins], to: ServedLedger.app)
            // What was bought before the catalog delivers nothing.
            store.say(PurchaseRouteTests.bought([("p", "coins", "")]))
            let tracker = Tracker.quiet(served.ledger, appStore: store.client)
            let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
            let more = environment.merging(["CREDITS": file, "ROUNDS": "1", "WAIT": "1"]) { _, new in new }
            func balance() async throws -> String {
                _ = try await tracker.submit(
                    Submission(bundleID: ServedLedger.app, customer: "kim", receipt: Sample.receipt()))
                try await served.ledger.deliveries.place()
                let done = try await run(["python3", Self.folder.appending(path: "credit.py").path], more)
                #expect(done.status == 0, "\(done.output)")
                return done.output.trimmingCharacters(in: .whitespacesAndNewlines)
            }
            #expect(try await balance() == "kim gold 200")
            #expect(try await balance() == "kim gold 200", "each delivery counts once")
            let now = Int64(Date.now.timeIntervalSince1970) * 1_000 + 2_000
            let refunded = PurchaseRouteTests.bought([("p", "coins", "")]).replacing(
                #""app_account_token":"""#, with: #""cancellation_date_ms":"\#(now)""#)
            store.say(refunded)
            #expect(try await balance() == "kim gold 0")
            try FileManager.default.removeItem(atPath: file)
        }
    }

    @Test("The examples for proofs make the documented ones, and the server takes them")
    func proofs() async throws {
        let (key, order) = ("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "6f1f6a0e-5a51-4a43-9d35-1d3b7f4a1b11")
        let receipt = "bm90IGEgcmVhbCByZWNlaXB0"
        let document = try String(
            contentsOf: Self.folder.appending(path: "../purchases.md").standardizedFileURL, encoding: .utf8)
        #expect([key, order, receipt].allSatisfy { document.contains($0) })
        let cases: [(words: [String], proof: (String) -> OrderProof)] = [
            (
                ["receipt", order, receipt],
                { OrderProof(of: order, receipt: Array("not a real receipt".utf8), code: $0) }
            ),
            (["state", order, "failed", "2"], { OrderProof(of: order, state: .failed, stateCode: "2", code: $0) }),
            (["state", order, "cancelled"], { OrderProof(of: order, state: .cancelled, stateCode: nil, code: $0) }),
        ]
        for (words, proof) in cases {
            for program in [["python3", "proof.py"], ["bash", "proof.sh"]] {
                let path = Self.folder.appending(path: program[1]).path
                let done = try await run([program[0], path] + words, ["ORDER_KEY": key])
                let made = done.output.trimmingCharacters(in: .whitespacesAndNewlines)
                #expect(done.status == 0 && document.contains(made), "\(program): \(done.output)")
                #expect(proof(made).isMade(with: key), "\(program): \(made)")
            }
        }
    }

    @Test("The example for orders places one, uploads its receipt, and finds it paid with a delivery")
    func orders() async throws {
        let store = ScriptedStore(saying: PurchaseRouteTests.bought([]))
        try await serving(store.client) { served, environment in
            var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
            coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
            try await served.ledger.apps.applyCatalog([coins], to: ServedLedger.app)
            store.say(PurchaseRouteTests.bought([("p", "coins", "")]))
            let program = Self.folder.appending(path: "order.py").path
            let script = "echo \(Sample.receipt()) | python3 \(program)"
            let more = environment.merging(["PRODUCT": "coins", "QUANTITY": "2"]) { _, new in new }
            let done = try await run(["bash", "-c", script], more)
            #expect(done.status == 0, "\(done.output)")
            #expect(done.output.contains(#""app_account_token": "#))
            #expect(done.output.contains("succeeded None may finish ['p']"), "\(done.output)")
            #expect(done.output.contains("order paid deliveries ['"), "\(done.output)")
            // What was bought just before pays the order as it is placed, and the example waits for no receipt.
            // It is of another instant than the first one, or it would be a possible duplicate, and after the catalog.
            store.say(PurchaseRouteTests.bought([("q", "coins", "")], secondsAgo: -1))
            _ = try await Tracker.quiet(served.ledger, appStore: store.client).submit(
                Submission(bundleID: ServedLedger.app, customer: "kim", receipt: Sample.receipt()))
            let paid = try await run(["bash", "-c", "python3 \(program) < /dev/null"], more)
            #expect(paid.status == 0 && paid.output.contains("order paid deliveries ['"), "\(paid.output)")
            #expect(!paid.output.contains("may finish"), "\(paid.output)")
        }
    }

    @Test("The examples for SQL work")
    func sql() async throws {
        try await withMigratedDatabase { database, address in
            let ledger = SubscriptionLedger(database: database)
            try await ledger.apps.add("com.example.app", callsPerSecond: 0)
            let tracker = Tracker.quiet(ledger, appStore: .answering(Sample.verified()))
            _ = try await tracker.submit(
                Submission(bundleID: "com.example.app", customer: "kim", receipt: Sample.receipt()))
            let done = try await run([
                "psql", address, "-X", "-v", "ON_ERROR_STOP=1", "-v", "app=com.example.app", "-v", "customer=kim",
                "-At", "-f",
                Self.folder.appending(path: "entitled.sql").path,
            ])
            let lines = done.output.split(separator: "\n").map(String.init)
            try #require(done.status == 0 && lines.count >= 3, "\(done.output)")
            #expect(lines[0].hasPrefix("monthly|t|") && lines[0].contains("|active||verified|"))
            #expect(lines[1].hasPrefix("f|"))
            #expect(lines[2].hasPrefix("1|subscription.started|monthly|"))
        }
    }
}
