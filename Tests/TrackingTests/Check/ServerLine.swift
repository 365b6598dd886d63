import Crypto
import Postgres
import Subscriptions
import Synchronization
import TestSupport
import Testing

@testable import AppStore
@testable import Tracking

/// A Server API in this process that answers by a script.
final class ScriptedServer: Sendable {
    private struct State {
        var requests: [ServerRequest] = []
        var verdict = ServerVerdict.keyRefused
        var httpStatus: Int? = 200
        var retryAfterSeconds: Double?
        var body: [UInt8] = []
    }

    private let state = Mutex(State())

    /// What was asked so far.
    var asked: [ServerRequest] { state.withLock(\.requests) }

    /// What it says from now on.
    func say(
        _ verdict: ServerVerdict, httpStatus: Int? = 200, retryAfter seconds: Double? = nil, body: [UInt8] = []
    ) {
        state.withLock { state in
            (state.verdict, state.httpStatus, state.retryAfterSeconds) = (verdict, httpStatus, seconds)
            state.body = body
        }
    }

    /// Answers with what a text holds, as if it were verified.
    func say(_ json: String) throws {
        let body = Array(json.utf8)
        say(.answered(try #require(ServerContents(reading: body), "\(json)")), body: body)
    }

    var client: ServerAPIClient {
        ServerAPIClient { [self] request in
            state.withLock { state in
                state.requests.append(request)
                return AppStoreAnswer(
                    environment: request.askFirst, server: state.verdict, httpStatus: state.httpStatus,
                    body: state.body,
                    calls: 1, retryAfterSeconds: state.retryAfterSeconds)
            }
        }
    }
}

/// An app with a server key, and both of Apple's channels by script.
struct ServerLine: Sendable {
    let served: ServedLedger
    let tracker: Tracker
    let journal: Journal
    let server: ScriptedServer
    let receipts: ScriptedStore

    static func with(_ body: @escaping @Sendable (ServerLine) async throws -> Void) async throws {
        try await ServedLedger.with { served in
            try await storeKey(in: served)
            let (receipts, server, journal) = (ScriptedStore(), ScriptedServer(), Journal())
            var client = receipts.client
            client.server = server.client
            let tracker = Tracker(
                ledger: served.ledger, appStore: client, options: TrackerOptions(), logger: journal.logger)
            try await body(
                ServerLine(served: served, tracker: tracker, journal: journal, server: server, receipts: receipts))
        }
    }

    private static func storeKey(in served: ServedLedger) async throws {
        let key = P256.Signing.PrivateKey().pemRepresentation
        try await served.ledger.apps.storeServerKey(
            try ConnectKey(pem: key, id: "K", issuer: "I"), of: ServedLedger.app)
        // A claim is known by the millisecond, so one within the same would be before the key.
        try await served.run("UPDATE ledger.server_key SET stored_at = stored_at - interval '1 second'")
    }

    /// Gives the app another key.
    func storeKey() async throws { try await Self.storeKey(in: served) }

    /// Stores an upload of the id of a transaction.
    func pointer(_ id: String, by customer: String = "kim") async throws -> ReceiptID {
        let submission = Submission(bundleID: ServedLedger.app, customer: customer, subject: .transactionID(id))
        return try #require(try await tracker.store([submission]).first?.get()).receiptID
    }

    /// Changes who is asked about the app's receipts.
    func verify(by verifier: Verifier) async throws {
        var change = AppChange()
        change.verifier = verifier
        try await served.ledger.apps.change(ServedLedger.app, change)
    }

    /// The rows of a query, each as one text: its columns joined by spaces.
    func rows(_ sql: String) async throws -> [String] {
        let line =
            "SELECT concat_ws(' ', VARIADIC ARRAY(SELECT v FROM json_each_text(row_to_json(q)) AS j(k, v))) AS line"
        let text = "\(line) FROM (\(sql)) q"
        return try await served.database.query(Statement(name: "test_\(text.hashValue)", sql: text)).map {
            try $0.text("line")
        }
    }
}
