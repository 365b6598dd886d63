import AppStore
import Foundation
import Hummingbird
import HummingbirdTesting
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

/// A migrated ledger with one app, a key for the pages, and an App Store that vouches for one subscription.
struct AdminWorld: Sendable {
    let ledger: SubscriptionLedger
    let database: Database
    let secret: String
    /// What answers support calls.
    var server = ServerAPIClient.none

    static let app = BundleID("com.example.app")
    /// A customer whose id a page must escape.
    static let customer = "<kim> & \"co\""

    /// DER of a shape that could be a receipt, in base64.
    static let receipt = Data([0x30, 0x82, 0x01, 0x00] + [UInt8](repeating: 0x2A, count: 256)).base64EncodedString()

    static func with(_ body: @escaping @Sendable (AdminWorld) async throws -> Void) async throws {
        try await withReusedDatabase { database, _ in
            let ledger = SubscriptionLedger(
                database: database, seal: try SecretSeal(masterKey: [UInt8](repeating: 7, count: 32)))
            try await ledger.apps.add(app, secret: "shared secret")
            let secret = try await ledger.apps.createKey(scope: .admin, for: nil).secret
            try await body(AdminWorld(ledger: ledger, database: database, secret: secret))
        }
    }

    /// A world in which the customer's receipt is verified.
    static func withReceipt(_ body: @escaping @Sendable ((AdminWorld, ReceiptID)) async throws -> Void) async throws {
        try await with { world in try await body((world, try await world.verifyReceipt())) }
    }

    /// What Apple says of a month that is half over.
    static var answer: String {
        let now = Int64(Date.now.timeIntervalSince1970) * 1000
        let (bought, ends) = (now - 15 * 86_400_000, now + 15 * 86_400_000)
        return """
            {"status":0,"environment":"Production",
             "receipt":{"bundle_id":"com.example.app","request_date_ms":"\(now)","receipt_creation_date_ms":"\(bought)",
              "in_app":[]},
             "latest_receipt_info":[{"product_id":"monthly","quantity":"1","transaction_id":"100",
              "original_transaction_id":"100","web_order_line_item_id":"1","purchase_date_ms":"\(bought)",
              "original_purchase_date_ms":"\(bought)","expires_date_ms":"\(ends)","is_trial_period":"false"}],
             "pending_renewal_info":[{"original_transaction_id":"100","product_id":"monthly",
              "auto_renew_product_id":"monthly","auto_renew_status":"1"}]}
            """
    }

    private var tracker: Tracker {
        var store = AppStoreClient.answering(Self.answer)
        store.server = server
        return .quiet(ledger, appStore: store)
    }

    /// Stores the customer's receipt and has it verified.
    private func verifyReceipt() async throws -> ReceiptID {
        let submitted = try await tracker.submit(
            Submission(bundleID: Self.app, customer: Self.customer, receipt: Self.receipt))
        guard case .settled(let settled, customer: _) = submitted else { throw AdminWorldError() }
        return settled.receiptID
    }

    /// Serves the pages, with one receipt of the customer verified.
    func serving(_ body: @escaping @Sendable (Browser, ReceiptID) async throws -> Void) async throws {
        let receipt = try await verifyReceipt()
        try await serving { try await body($0, receipt) }
    }

    /// Serves the pages as they are.
    func serving(_ body: @escaping @Sendable (Browser) async throws -> Void) async throws {
        try await Serving.with(tracker) { client in try await body(Browser(client: client)) }
    }

    /// Apple's answer was not settled.
    struct AdminWorldError: Error {}
}

/// What a browser does for the pages: it keeps the cookie and sends forms.
final class Browser: @unchecked Sendable {
    let client: any TestClientProtocol
    var cookie: String?

    init(client: any TestClientProtocol) { self.client = client }

    func get(_ path: String) async throws -> TestResponse {
        try await client.executeRequest(uri: path, method: .get, headers: headers([:]), body: nil)
    }

    /// Sends a form as our own page would, unless other headers say that another one did.
    func post(
        _ path: String, _ fields: KeyValuePairs<String, String>, from headers: HTTPFields = [:]
    ) async throws -> TestResponse {
        try await post(path, fields.map { ($0.key, $0.value) }, from: headers)
    }

    /// Sends a form with fields that are put together.
    func post(_ path: String, _ fields: [(String, String)], from headers: HTTPFields = [:]) async throws -> TestResponse
    {
        var headers = self.headers(headers)
        headers[.contentType] = "application/x-www-form-urlencoded"
        let body = fields.map { String(address("", [$0.0: $0.1]).dropFirst()) }.joined(separator: "&")
        return try await client.executeRequest(
            uri: path, method: .post, headers: headers, body: ByteBuffer(string: body))
    }

    /// Signs in and keeps the cookie; returns the answer.
    @discardableResult
    func signIn(_ secret: String) async throws -> TestResponse {
        let answer = try await post("/admin/session", ["key": secret])
        if let set = answer.headers[.setCookie] { cookie = String(set.prefix { $0 != ";" }) }
        return answer
    }

    /// The token that the forms of a page carry.
    func formToken(on path: String) async throws -> String {
        let page = try await get(path).text
        return try #require(page.firstMatch(of: #/name="form_token" value="(?<token>[0-9a-f]{64})"/#)?.output.token)
            .description
    }

    private func headers(_ given: HTTPFields) -> HTTPFields {
        var headers = given
        if let cookie { headers[.cookie] = cookie }
        return headers
    }
}

extension TestResponse {
    /// The body as text.
    var text: String { String(buffer: body) }
}
