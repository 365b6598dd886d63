import AppStoreSimulator
import AsyncHTTPClient
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import Postgres
import Server
import ServiceLifecycle
import Subscriptions
import Testing
import Tracking

/// From Apple's notification to the refund in the feed: a worker as a process of its own, the HTTP API, a pretend store.
@Suite("A notification of Apple leads to an event") struct UnverifiedNotificationProcessTests {
    /// Without a hint Apple would be asked an hour later at the soonest; this is how long the test waits before it fails.
    private static let patienceSeconds = 60

    @Test("A refund that Apple notifies of is known, although no check was planned within the hour")
    func refundIsKnownByAHint() async throws {
        let day = 86_400.0
        try await PretendWorld.with(seed: 5, customers: 24, sandboxCustomers: 0, monthSeconds: day) { world in
            let worker = try world.startWorkerProcess(leaseSeconds: 10, speedup: 30)
            defer {
                kill(worker.processIdentifier, SIGKILL)
                worker.waitUntilExit()
            }
            let made = world.simulator.createCustomer(CustomerScript())
            _ = try await world.tracker.store([
                Submission(bundleID: BundleID(made.app), customer: made.customer, receipt: made.receipt, imported: true)
            ])
            try await until("the subscription is known") { try await world.quiet(of: made.customer) != nil }
            let id = try #require(try await world.quiet(of: made.customer))
            #expect(try world.simulator.act(CustomerAction(.refund), on: made.customer))
            let token = try await world.tracker.ledger.apps.openNotifications(of: "com.example.tracker")
            try await world.serving { port in
                let reported = try await world.post(
                    #"{"notification_type":"REFUND","environment":"PROD","original_transaction_id":"\#(id)"}"#,
                    to: "/v1/notifications/\(token.text)", port: port)
                #expect(reported.contains("pulled"), "\(reported)")
                try await until("the refund is in the feed") {
                    try await world.tracker.ledger.feed.read(after: 0, limit: 1000).events.contains {
                        $0.kind == "refund.granted" && $0.originalTransactionID?.text == id
                    }
                }
            }
            try await world.expectNoViolations()
        }
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
    /// A customer's subscription, once it runs and no check of it is planned within the hour.
    fileprivate func quiet(of customer: String) async throws -> String? {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print($0) }
        let rows = try await database.query(
            Statement(
                name: "quiet",
                sql: """
                    SELECT n.original_transaction_id
                    FROM perennial.subscription_now n
                    JOIN ledger.subscription s USING (original_transaction_id)
                    JOIN ledger.poll_schedule p ON p.receipt_id = s.polled_by
                    WHERE n.customer = $1::text AND n.state = 'active' AND p.due_at > now() + interval '1 hour'
                    """), [.text(customer)])
        await database.close()
        return try rows.first?.text("original_transaction_id")
    }

    /// What the answer says; nothing else than success will do.
    fileprivate func post(_ body: String, to path: String, port: Int) async throws -> String {
        let answer = try await send(body, to: path, port: port)
        try #require((200..<300).contains(answer.status), "\(path): \(answer.text)")
        return answer.text
    }

    private func send(_ body: String, to path: String, port: Int) async throws -> (status: UInt, text: String) {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
        request.method = .POST
        request.headers.add(name: "content-type", value: "application/json")
        request.body = .bytes(ByteBuffer(string: body))
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
        return (response.status.code, String(buffer: try await response.body.collect(upTo: 1 << 20)))
    }

    /// Serves the HTTP API while `body` runs.
    func serving(
        with tracker: Tracker? = nil, _ body: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let logger = Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() }
        let server = HTTPServer(
            tracker: tracker ?? self.tracker, metrics: MetricsRegistry(), host: "127.0.0.1", port: 0, logger: logger,
            servesAdmin: false
        ) { port.yield($0) }
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
