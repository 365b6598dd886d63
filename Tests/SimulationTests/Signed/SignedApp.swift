import AppStore
import AppStoreSimulator
import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// An app whose notifications a pretend Apple signs, without a server between.
struct SignedApp: Sendable {
    let served: ServedLedger
    let tracker: Tracker
    let authority: SigningAuthority
    let app: NotifiedApp
    /// What Apple answers about the receipt.
    let store: ScriptedStore
    /// A customer's receipt, about which nothing was answered yet.
    let receipt: ReceiptID
    /// When everything began, in milliseconds: thirty days ago.
    let start: Int64

    static let day: Int64 = 86_400_000
    static let bundleID = ServedLedger.app.text

    static func with(_ body: @escaping @Sendable (SignedApp) async throws -> Void) async throws {
        try await ServedLedger.with { served in
            let authority = try SigningAuthority()
            let store = ScriptedStore()
            let tracker = Tracker(
                ledger: served.ledger, appStore: store.client, options: TrackerOptions(), logger: .quiet,
                signedTexts: SignedTextVerifier(trusting: try SigningRoot(der: authority.certificates[2])))
            let token = try await served.ledger.apps.openNotifications(of: ServedLedger.app)
            let app = try #require(try await served.ledger.apps.notifiedApp(at: token))
            let upload = Upload(
                appID: app.id, customer: "kim", receipt: Array("receipt".utf8), imported: false)
            let receipt = try #require(try await served.ledger.intake.store([upload]).first).receiptID
            try await body(
                SignedApp(
                    served: served, tracker: tracker, authority: authority, app: app, store: store, receipt: receipt,
                    start: app.now.milliseconds - 30 * day))
        }
    }

    /// A customer whose id is an account token, which is returned.
    func customer() async throws -> String {
        let token = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
        let id = try await served.ledger.apps.app(ServedLedger.app).id
        _ = try await served.ledger.intake.store([
            Upload(appID: id, customer: token, receipt: Array("receipt of a token".utf8), imported: false)
        ])
        return token
    }

    /// A text that holds an object.
    func sign(_ object: [String: Any]) throws -> String {
        try authority.sign(Array(try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys])))
    }

    /// A period of the subscription `s1`, as a signed transaction: it begins on a day and lasts a number of days.
    func transaction(
        _ id: String, from day: Double, days: Double = 7, signedOn: Double, _ more: [String: Any] = [:]
    ) -> [String: Any] {
        [
            "transactionId": id, "originalTransactionId": "s1", "webOrderLineItemId": "w\(id)", "productId": "weekly",
            "bundleId": Self.bundleID, "environment": "Production", "type": "Auto-Renewable Subscription",
            "purchaseDate": at(day), "originalPurchaseDate": at(id == "1" ? day : 0), "expiresDate": at(day + days),
            "quantity": 1,
            "inAppOwnershipType": "PURCHASED", "subscriptionGroupIdentifier": "g1", "price": 4_990, "currency": "EUR",
            "signedDate": at(signedOn),
        ].merging(more) { $1 }
    }

    /// Renewal information of the subscription `s1`.
    func renewal(ends day: Double, signedOn: Double, renews: Bool = true, _ more: [String: Any] = [:]) -> [String: Any]
    {
        [
            "originalTransactionId": "s1", "productId": "weekly", "autoRenewProductId": "weekly",
            "autoRenewStatus": renews ? 1 : 0, "renewalDate": at(day), "environment": "Production",
            "signedDate": at(signedOn),
        ].merging(more) { $1 }
    }

    /// A notification's text.
    func notification(
        _ kind: String, _ subtype: String? = nil, status: Int? = 1, uuid: String = UUID().uuidString,
        transaction: [String: Any]?, renewal: [String: Any]? = nil, signedOn: Double, bundle: String = bundleID
    ) throws -> String {
        var data: [String: Any] = ["bundleId": bundle, "environment": "Production", "appAppleId": 1]
        if let status { data["status"] = status }
        if let transaction { data["signedTransactionInfo"] = try sign(transaction) }
        if let renewal { data["signedRenewalInfo"] = try sign(renewal) }
        var outer: [String: Any] = [
            "notificationType": kind, "notificationUUID": uuid, "version": "2.0", "signedDate": at(signedOn),
            "data": data,
        ]
        if let subtype { outer["subtype"] = subtype }
        return try sign(outer)
    }

    /// The milliseconds of a day since the start.
    func at(_ day: Double) -> Int64 { start + Int64(day * Double(Self.day)) }

    /// Receives a text; returns its effect, or why it is unverified.
    @discardableResult
    func post(_ text: String) async throws -> String {
        switch try await tracker.receive(Array(text.utf8), for: app, admittingChain: { true }) {
        case .verified(let verified): try await served.ledger.intake.keep(verified, for: app).rawValue
        case .unverified(let reason): reason
        }
    }

    /// Has verifyReceipt answer about the receipt, on a day, with what signed transactions state; prices it does not know.
    @discardableResult
    func answer(
        on day: Double, _ transactions: [[String: Any]], renews: Bool = true, to product: String? = nil,
        about receipt: ReceiptID? = nil
    ) async throws -> Settled {
        func text(_ value: Any?) -> String? { value.flatMap { $0 is NSNull ? nil : "\($0)" } }
        let names = [
            "transaction_id": "transactionId", "original_transaction_id": "originalTransactionId",
            "web_order_line_item_id": "webOrderLineItemId", "product_id": "productId", "quantity": "quantity",
            "purchase_date_ms": "purchaseDate", "original_purchase_date_ms": "originalPurchaseDate",
            "expires_date_ms": "expiresDate", "cancellation_date_ms": "revocationDate",
            "cancellation_reason": "revocationReason", "app_account_token": "appAccountToken",
            "subscription_group_identifier": "subscriptionGroupIdentifier", "is_upgraded": "isUpgraded",
        ]
        let rows = transactions.map { transaction in
            var row = names.compactMapValues { text(transaction[$0]) }
            if text(transaction["offerDiscountType"]) == "FREE_TRIAL" { row["is_trial_period"] = "true" }
            return row
        }
        let last = transactions.last { text($0["expiresDate"]) != nil }
        let renewals = last.map { last in
            [
                "original_transaction_id": text(last["originalTransactionId"]) ?? "",
                "product_id": text(last["productId"]) ?? "",
                "auto_renew_product_id": product ?? text(last["productId"]) ?? "",
                "auto_renew_status": renews ? "1" : "0",
            ]
        }
        let body: [String: Any] = [
            "status": 0, "environment": "Production", "latest_receipt_info": rows,
            "pending_renewal_info": [renewals].compactMap(\.self),
            "receipt": ["bundle_id": Self.bundleID, "request_date_ms": "\(at(day))", "in_app": []] as [String: Any],
        ]
        let json = try JSONSerialization.data(withJSONObject: body, options: [.sortedKeys])
        store.say(String(decoding: json, as: UTF8.self))
        return try await tracker.check(receipt ?? self.receipt)
    }

    /// Receives texts, then has verifyReceipt answer.
    func hear(
        _ texts: [String], answering day: Double, _ transactions: [[String: Any]], renews: Bool = true,
        about receipt: ReceiptID? = nil
    ) async throws {
        for text in texts { try await post(text) }
        try await answer(on: day, transactions, renews: renews, about: receipt)
    }

    /// The receipt that a customer sent.
    func receipt(of customer: String) async throws -> ReceiptID {
        let receipts = try await rows(
            """
            SELECT u.receipt_id::text AS line FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
            WHERE c.name = '\(customer)'
            """)
        return ReceiptID(try #require(receipts.first.flatMap { Int64($0) }))
    }

    /// The events so far: kind and product, in the order of the subscription's versions.
    func events() async throws -> [String] {
        try await rows("SELECT kind::text AS line FROM ledger.event ORDER BY version, ordinal")
    }

    /// The effects of the stored notifications, in the order of their arrival.
    func effects() async throws -> [String] {
        try await rows("SELECT effect AS line FROM ledger.notification ORDER BY notification_id")
    }

    /// The column `line` of a query.
    func rows(_ sql: String) async throws -> [String] {
        try await served.database.query(Statement(name: "test_\(sql.hashValue)", sql: sql)).map { try $0.text("line") }
    }

    /// State, reason and access of the subscription now.
    func standing() async throws -> [String] {
        try await rows(
            "SELECT concat_ws(' ', state, reason, entitled, product_id) AS line FROM perennial.subscription_now")
    }

    /// A rebuild finds nothing to correct, and every promise holds.
    func expectSound(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let batch = try await served.ledger.operations.rebuild(
            from: .start, RebuildScope(), correcting: false, reading: .present)
        #expect(batch.differences.map { "\($0)" } == [], sourceLocation: sourceLocation)
        try await served.ledger.operations.expectNoViolations(
            otherwise: VerifyTerms(leaseSeconds: 60, speedup: 1), sourceLocation: sourceLocation)
    }
}
