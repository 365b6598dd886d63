import Hummingbird
import HummingbirdTesting
import Logging
import Postgres
import ServiceLifecycle
import Subscriptions
import TestSupport
import Testing

@testable import Server
@testable import Tracking

/// The keys of tests without a database.
enum TestKey: String, CaseIterable {
    case read, write, admin
    case otherApp, unknown

    /// A secret in the form of ours.
    var secret: String {
        let digit = Self.allCases.firstIndex(of: self) ?? 0
        return "perennial_" + String(repeating: String(digit), count: 64)
    }

    private var key: APIKey? {
        switch self {
        case .read: APIKey(id: 1, scope: .read, bundleID: "com.example.app", rate: .usual)
        case .write: APIKey(id: 2, scope: .write, bundleID: "com.example.app", rate: .usual)
        case .admin: APIKey(id: 3, scope: .admin, bundleID: nil, rate: .usual)
        case .otherApp: APIKey(id: 4, scope: .admin, bundleID: "com.example.other", rate: .usual)
        case .unknown: nil
        }
    }

    static func find(_ secret: String) -> APIKey? { allCases.first { $0.secret == secret }?.key }
}

enum Serving {
    /// A server whose database cannot be reached: enough for everything that is refused before it is asked.
    static func withoutDatabase<Result: Sendable>(
        limits: ServerLimits = ServerLimits(), _ setup: TestingSetup = .router,
        _ body: @escaping @Sendable (any TestClientProtocol) async throws -> Result
    ) async throws -> Result {
        let away = DatabaseConfiguration(
            connectionString: "host=127.0.0.1 port=1 user=nobody dbname=nothing", connectTimeoutSeconds: 1)
        let database = Database(away) { _ in }
        let server = HTTPServer(
            tracker: .quiet(SubscriptionLedger(database: database)), logger: .quiet, limits: limits,
            keys: KeyCache { TestKey.find($0) })
        let result = try await server.application.test(setup) { client in try await body(client) }
        await database.close()
        return result
    }

    /// A server on a ledger in PostgreSQL, as `serve` runs it.
    static func with<Result: Sendable>(
        _ tracker: Tracker, metrics: MetricsRegistry = MetricsRegistry(),
        _ body: @escaping @Sendable (any TestClientProtocol) async throws -> Result
    ) async throws -> Result {
        let server = HTTPServer(tracker: tracker, metrics: metrics, host: "127.0.0.1", port: 0, logger: .quiet)
        return try await server.application.test(.router) { client in try await body(client) }
    }

    /// Runs a server of its own on a suite's ledger and a free port while `body` talks to it.
    static func onPort(
        of suite: OncePerSuite<ServedLedger>, _ limits: ServerLimits = ServerLimits(), logger: Logger = .quiet,
        _ body: @escaping @Sendable (ServedLedger, Int) async throws -> Void
    ) async throws {
        try await suite.use { served in
            let (ports, found) = AsyncStream.makeStream(of: Int.self)
            let server = HTTPServer(
                tracker: .quiet(served.ledger), logger: logger, onListening: { found.yield($0) },
                limits: limits, keys: KeyCache { try await served.ledger.apps.key(withSecret: $0) })
            let services = ServiceGroup(configuration: .init(services: [server], logger: .quiet))
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    defer { found.finish() }
                    try await services.run()
                }
                for await port in ports {
                    try await body(served, port)
                    await services.triggerGracefulShutdown()
                    break
                }
                try await group.waitForAll()
            }
        }
    }

    static let receipts = "/v1/apps/com.example.app/receipts"
    static let entitlements = "/v1/apps/com.example.app/customers/kim/entitlements"
}

extension TestClientProtocol {
    /// Sends a request with a key's secret and a JSON body, if there are any.
    func send(
        _ method: HTTPRequest.Method, _ path: String, secret: String? = nil, body: String? = nil,
        headers: HTTPFields = [:]
    ) async throws -> TestResponse {
        var headers = headers
        if let secret { headers[.authorization] = "Bearer \(secret)" }
        return try await executeRequest(
            uri: path, method: method, headers: headers, body: body.map { ByteBuffer(string: $0) })
    }
}
