import AsyncHTTPClient
import AppStoreSimulator
import Foundation
import Ledger
import Logging
import NIOCore
import Postgres
import ServiceLifecycle
import Subscriptions
import Testing
import Tracking

/// From Apple's notification to the refund in the feed: a worker as a process of its own, the HTTP API, a pretend store.
@Suite struct HintProcessTests {
    /// Without a hint Apple would be asked days later; this is only how long the test waits before it fails.
    private static let patienceSeconds = 60

    @Test("A refund that Apple tells of is known although nobody would have asked for days")
    func refundIsKnownByAHint() async throws {
        let lifelike = 30 * 86_400.0
        try await PretendWorld.with(seed: 5, customers: 12, sandboxCustomers: 0, monthSeconds: lifelike) { world in
            let worker = try world.startWorkerProcess(leaseSeconds: 10, speedup: 1)
            defer {
                kill(worker.processIdentifier, SIGKILL)
                worker.waitUntilExit()
            }
            try await until("every receipt is verified") { try await world.tracker.ledger.status().unverified == 0 }
            #if os(Linux)
                #expect(try niceness(of: worker.processIdentifier) >= 10, "a worker lets others go first")
            #endif
            let running = try #require(try await world.refundable())
            let token = try await world.tracker.ledger.openNotifications(of: "com.example.tracker")
            try await world.post(
                #"{"action":"refund"}"#, to: "/simulator/customers/\(running.customer)/actions", port: world.port)
            try await world.serving { port in
                let told = try await world.post(
                    #"{"notification_type":"REFUND","environment":"PROD","original_transaction_id":"\#(running.id)"}"#,
                    to: "/v1/notifications/\(token.text)", port: port)
                #expect(told.contains("pulled"), "\(told)")
                try await until("the refund is in the feed") {
                    try await world.tracker.ledger.feed(after: 0, limit: 1000).events.contains {
                        $0.kind == "refund.granted" && $0.originalTransactionID.text == running.id
                    }
                }
            }
        }
    }

    /// The nineteenth field of proc(5); the second is the name in brackets.
    private func niceness(of process: Int32) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        let fields = try #require(text.split(separator: ")").last).split(separator: " ")
        return try #require(Int(fields[16]))
    }

    private func until(_ what: String, _ isSo: () async throws -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(Self.patienceSeconds)
        while try await !isSo() {
            try #require(ContinuousClock.now < end, "not within \(Self.patienceSeconds) s: \(what)")
            try await Task.sleep(for: .milliseconds(100))
        }
    }
}

extension PretendWorld {
    /// A customer with a subscription that runs and that nobody asks about today.
    fileprivate func refundable() async throws -> (customer: String, id: String)? {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print($0) }
        let rows = try await database.query(
            Statement(
                name: "refundable",
                sql: """
                    SELECT n.customer, n.original_transaction_id
                    FROM perennial.subscription_now n
                    JOIN ledger.subscription s USING (original_transaction_id)
                    JOIN ledger.poll_schedule p ON p.receipt_id = s.polled_by
                    WHERE n.state = 'active' AND NOT 'trial' = ANY(n.flags) AND p.due_at > now() + interval '1 hour'
                    ORDER BY 1 LIMIT 1
                    """))
        await database.close()
        return try rows.first.map { (try $0.text("customer"), try $0.text("original_transaction_id")) }
    }

    /// What the answer says.
    @discardableResult
    fileprivate func post(_ body: String, to path: String, port: Int) async throws -> String {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
        request.method = .POST
        request.headers.add(name: "content-type", value: "application/json")
        request.body = .bytes(ByteBuffer(string: body))
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
        let answer = try await response.body.collect(upTo: 1 << 20)
        try #require((200..<300).contains(response.status.code), "\(path): \(String(buffer: answer))")
        return String(buffer: answer)
    }

    /// Serves the HTTP API while `body` runs.
    fileprivate func serving(_ body: @escaping @Sendable (Int) async throws -> Void) async throws {
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let logger = Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() }
        let server = Server(tracker: tracker, host: "127.0.0.1", port: 0, logger: logger, servesAdmin: false) {
            port.yield($0)
        }
        let group = ServiceGroup(configuration: .init(services: [.init(service: server)], logger: logger))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let listening = try #require(await ports.first { _ in true })
            try await body(listening)
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }
}
