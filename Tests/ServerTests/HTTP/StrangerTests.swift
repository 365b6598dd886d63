import AppStore
import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Subscriptions
import Synchronization
import TestSupport
import Testing
import Tracking

@testable import Server

/// What a stranger does, who has no account of the honest customers: one row after the other of "Who can slow down whom" in
/// docs/operations.md that a caller's input can trip. Connections have tests of their own, over sockets.
private enum Trick: String, CaseIterable, CustomTestStringConvertible {
    case nothing
    case foreignReceipts = "receipts that Apple answers with 21004"
    case silentReceipts = "receipts that Apple never answers"
    case overloads = "receipts that Apple answers with HTTP 503"
    case malformedReceipts = "receipts that Apple calls malformed"
    case deletedAccounts = "receipts of deleted accounts, which Apple vouched for before"
    case crashes = "receipts that end processes"
    case newReceipts = "more new receipts than a customer may send"
    case orders = "more orders than a customer may have"
    case ownOrder = "more proved calls than an order may have"
    case failedCalls = "failed calls about unknown orders"
    case wrongProofs = "wrong proofs about one order"
    case keyRate = "more requests than an API key may make"
    case signIns = "failed sign-ins"
    case hints = "notifications about subscriptions of others"

    var testDescription: String { rawValue }
}

@Suite("A stranger's input never slows another's") struct StrangerTests {
    /// What an App Store answers: honest receipts are vouched for, a stranger's get `strange`.
    private final class Store: Sendable {
        /// The receipts of the honest customers, and how often Apple was asked about each.
        let calls = Mutex<[String: Int]>([:])
        let strange = Mutex(AppStoreAnswer.saying(#"{"status":21004}"#))

        var client: AppStoreClient {
            AppStoreClient { [self] request in
                guard let number = StrangerTests.receipts.firstIndex(of: request.receipt) else {
                    return strange.withLock { $0 }
                }
                calls.withLock { $0["\(number)", default: 0] += 1 }
                guard request.receipt != StrangerTests.receipts[2] else {
                    return .saying(PurchaseRouteTests.bought([("p", "coins", "")]))
                }
                return .saying(
                    Sample.verified(subscription: "\(number)").replacing(
                        #""latest_receipt_info""#,
                        with: #""latest_receipt":"\#(request.receipt)","latest_receipt_info""#
                    ))
            }
        }
    }

    private struct Street: Sendable {
        let served: ServedLedger
        let tracker: Tracker
        let store: Store
        let client: any TestClientProtocol

        /// Uploads a receipt by the operator's service.
        func upload(_ receipt: String, by customer: String, secret: String? = nil) async throws -> TestResponse {
            try await client.send(
                .post, Serving.receipts, secret: secret ?? served.secret,
                body: Sample.upload(receipt, customer: customer))
        }

        func order(by customer: String) async throws -> TestResponse {
            let name = try #require(HTTPField.Name("Idempotency-Key"))
            return try await client.send(
                .post, "/v1/apps/com.example.app/orders", secret: served.secret,
                body: #"{"customer":"\#(customer)","product_id":"coins","quantity":2}"#,
                headers: [name: UUID().uuidString])
        }

        /// Sends a receipt for an order, with its proof or a wrong one.
        func prove(_ receipt: String, for order: AnswerBody, isWrong: Bool = false) async throws -> TestResponse {
            let id = try #require(order.text("order_id"))
            let key = SymmetricKey(data: try #require(Data(base64Encoded: order.text("key") ?? "")))
            let digest = SHA256.hash(data: try #require(Data(base64Encoded: receipt)))
                .map { String(format: "%02x", $0) }.joined()
            let proof = HMAC<SHA256>.authenticationCode(for: Data("\(id).\(digest)".utf8), using: key)
                .map { String(format: "%02x", $0) }.joined()
            return try await client.send(
                .post, "/v1/orders/\(id)/receipt",
                body: #"{"receipt":"\#(receipt)","proof":"\#(isWrong ? "wrong" : proof)"}"#)
        }

        /// Makes everything due and lets a worker ask.
        func work() async throws {
            try await served.run(
                """
                UPDATE ledger.poll_schedule SET due_at = now() - interval '1 s', scheduled_for = now() - interval '1 s'
                WHERE leased_by IS NULL
                """)
            _ = try await Worker(tracker).runOnce(maxSeconds: nil)
        }

        /// Stores receipts of a stranger's, which Apple vouched for before or not, and lets workers ask about them.
        func bring(_ receipts: Range<Int>, vouched: Bool = false, answered answer: AppStoreAnswer) async throws {
            let app = try await served.ledger.apps.app(ServedLedger.app)
            if vouched {
                for number in receipts {
                    store.strange.withLock { $0 = .saying(Sample.verified(subscription: "9\(number)")) }
                    _ = try await upload(Sample.receipt(number), by: "stranger\(number)")
                }
            }
            store.strange.withLock { $0 = answer }
            _ = try await served.ledger.intake.store(
                receipts.map { number in
                    Upload(
                        appID: app.id, customer: "stranger\(number)",
                        receipt: Array(Data(base64Encoded: Sample.receipt(number)) ?? Data()), imported: false)
                })
            for _ in 0..<3 { try await work() }
        }
    }

    /// Receipts of honest customers: one that is due, an upload, and one that a device proves.
    fileprivate static let receipts = (0..<3).map { Sample.receipt($0) }

    private func play(_ trick: Trick, _ street: Street) async throws {
        switch trick {
        case .nothing: for _ in 0..<3 { try await street.work() }
        case .foreignReceipts: try await street.bring(10..<70, answered: .saying(#"{"status":21004}"#))
        // With the honest receipt these are the 20 answers by which the pace is decided.
        case .silentReceipts: try await street.bring(10..<29, answered: .saying(nil))
        case .overloads:
            let busy = AppStoreAnswer(
                environment: .production, httpStatus: 503, body: [], failure: "HTTP 503", calls: 1,
                usedPreviousSecret: false, elapsedMilliseconds: 1)
            try await street.bring(10..<29, answered: busy)
        case .malformedReceipts: try await street.bring(10..<70, answered: .saying(#"{"status":21002}"#))
        case .deletedAccounts:
            try await street.bring(10..<16, vouched: true, answered: .saying(#"{"status":21010}"#))
            try await street.served.ledger.operations.watchCanaries()
        case .crashes:
            try await street.bring(10..<14, answered: .saying(nil))
            try await street.served.run(
                "UPDATE ledger.poll_schedule SET crashes = 3, leased_by = 0, due_at = now() - interval '1 s' WHERE receipt_id > 1"
            )
            try await street.work()
        case .newReceipts:
            let statuses = try await statuses(13) { try await street.upload(Sample.receipt(10 + $0), by: "stranger") }
            #expect(statuses.last == .tooManyRequests)
        case .orders:
            let statuses = try await statuses(40) { _ in try await street.order(by: "stranger") }
            #expect(statuses.allSatisfy { $0 == .created || $0 == .tooManyRequests })
        case .ownOrder:
            let own = try AnswerBody(try await street.order(by: "stranger"))
            let statuses = try await statuses(13) { _ in try await street.prove(Sample.receipt(10), for: own) }
            #expect(statuses.last == .tooManyRequests)
        case .failedCalls:
            let statuses = try await statuses(100) { _ in
                try await street.client.send(
                    .post, "/v1/orders/\(UUID())/receipt", body: #"{"receipt":"AAAA","proof":"wrong"}"#)
            }
            #expect(statuses.last == .tooManyRequests)
        case .wrongProofs:
            try await failProofs(street)
        case .keyRate:
            let key = try await street.served.key(.write, rate: RequestRate(perSecond: 0.001, burst: 2))
            let statuses = try await statuses(4) { _ in
                try await street.upload(Sample.receipt(10), by: "stranger", secret: key)
            }
            #expect(statuses.last == .tooManyRequests)
        case .signIns:
            try await failSignIns(street)
        case .hints:
            let token = try await street.served.ledger.apps.openNotifications(of: ServedLedger.app)
            let statuses = try await statuses(60) { _ in
                try await street.client.send(
                    .post, "/v1/notifications/\(token.text)", body: NotificationBodyTests.versionTwo)
            }
            #expect(statuses.allSatisfy { $0 == .ok })
            try await street.work()
        }
    }

    private func failProofs(_ street: Street) async throws {
        let own = try AnswerBody(try await street.order(by: "stranger"))
        func fail(_ times: Int) async throws {
            _ = try await statuses(times) { _ in try await street.prove(Sample.receipt(10), for: own, isWrong: true)
            }
        }
        try await fail(500)
        #expect(try await street.prove(Sample.receipt(10), for: own).status == .accepted)
        try await fail(400)
        #expect(try await street.prove(Sample.receipt(10), for: own).status == .tooManyRequests)
    }

    private func failSignIns(_ street: Street) async throws {
        let browser = Browser(client: street.client)
        let wrong = "perennial_" + String(repeating: "0", count: 64)
        var last = HTTPResponse.Status.ok
        for _ in 0...SignInAttempts.failuresMax { last = try await browser.signIn(wrong).status }
        #expect(last == .tooManyRequests)
    }

    private func statuses(
        _ count: Int, _ call: (Int) async throws -> TestResponse
    ) async throws -> [HTTPResponse.Status] {
        var statuses: [HTTPResponse.Status] = []
        for number in 0..<count { statuses.append(try await call(number).status) }
        return statuses
    }

    @Test("An honest upload, proof and check end with as many calls as without it", arguments: Trick.allCases)
    fileprivate func honest(_ trick: Trick) async throws {
        let store = Store()
        try await ServedLedger.with { served in
            var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
            coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
            try await served.ledger.apps.applyCatalog([coins], to: ServedLedger.app)
            let tracker = Tracker.quiet(served.ledger, appStore: store.client)
            try await Serving.with(tracker) { client in
                let street = Street(served: served, tracker: tracker, store: store, client: client)
                #expect(try await street.upload(Self.receipts[0], by: "ann").status == .ok)
                let order = try AnswerBody(try await street.order(by: "kim"))
                try await play(trick, street)
                store.calls.withLock { $0 = [:] }

                let uploaded = try await street.upload(Self.receipts[1], by: "bob")
                #expect(uploaded.status == .ok, "\(String(buffer: uploaded.body))")
                let proved = try await street.prove(Self.receipts[2], for: order)
                #expect(
                    try proved.status == .ok && AnswerBody(proved).text("result") == "succeeded",
                    "\(String(buffer: proved.body))")
                let own = try await client.send(
                    .get, "/v1/apps/com.example.app/customers/bob/entitlements", secret: served.secret)
                #expect(own.status == .ok)
                let browser = Browser(client: client)
                #expect(try await browser.signIn(served.secret).status == .seeOther)
                try await street.work()
                // One call for the upload and one for the proof, and one for each in one round of scheduled checks.
                #expect(store.calls.withLock { $0 } == ["0": 1, "1": 2, "2": 2])
                let app = try await served.ledger.apps.app(ServedLedger.app)
                #expect(app.pauses.isEmpty && app.callsPerSecondNow == 0, "\(app.pauses)")
            }
        }
    }
}
