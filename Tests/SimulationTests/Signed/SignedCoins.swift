import Crypto
import TestSupport
import Testing

@testable import Subscriptions
@testable import Tracking

/// Coins of an app with a key of the Server API, about which both channels answer.
extension SignedApp {
    /// An app with a key of the Server API.
    static func withKey(_ body: @escaping @Sendable (SignedApp) async throws -> Void) async throws {
        try await with { app in
            try await app.giveKey()
            let address = try await app.tracker.ledger.apps.openNotifications(of: ServedLedger.app)
            let keyed = try #require(try await app.tracker.ledger.apps.notifiedApp(at: address))
            try await body(
                SignedApp(
                    served: app.served, tracker: app.tracker, authority: app.authority, app: keyed, store: app.store,
                    receipt: app.receipt, start: app.start))
        }
    }

    /// Stores a new key of the Server API.
    func giveKey() async throws {
        try await tracker.ledger.apps.storeServerKey(
            try ConnectKey(
                pem: P256.Signing.PrivateKey().pemRepresentation, id: "K1",
                issuer: "57246542-96fe-1a63-e053-0824d011072a"), of: ServedLedger.app)
    }

    /// Every promise holds.
    func expectNoViolations(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await tracker.ledger.operations.expectNoViolations(
            otherwise: VerifyTerms(leaseSeconds: 60, speedup: 1), sourceLocation: sourceLocation)
    }

    /// The receipt that a notification made.
    func ownerless() async throws -> ReceiptID {
        let ids = try await rows(
            "SELECT receipt_id::text AS line FROM ledger.receipt WHERE form = 'transaction_id' ORDER BY 1")
        return ReceiptID(try #require(ids.first.flatMap { Int64($0) }))
    }

    /// The follow-ups of a receipt, and the seconds until its next check.
    func schedule(_ receipt: ReceiptID) async throws -> [String] {
        try await rows(
            """
            SELECT concat_ws(' ', follow_ups, round(extract(epoch FROM due_at - now()))) AS line
            FROM ledger.poll_schedule WHERE receipt_id = \(receipt)
            """)
    }

    /// Has the Server API answer about a receipt on a day, with rows of a history.
    func serverAnswer(about receipt: ReceiptID, on day: Double, _ rows: [TransactionRow]) async throws {
        let worker = try await tracker.ledger.claims.startWorker(host: "test", process: 1)
        let claim = try await tracker.ledger.claims.claim(receipt, for: worker, leaseSeconds: 60)
        let evidence = Evidence(
            environment: .production, bundleID: ServedLedger.app, asOf: Instant(milliseconds: at(day)),
            transactions: rows, confirmsOtherPurchases: true)
        let settlement = Settlement(
            claim: claim, finding: .verified(evidence), body: Array("{}".utf8), latestReceipt: nil,
            server: ServerRead(beginsAtStart: true, revision: "r", goesOn: false))
        let batch = try await tracker.ledger.settlements.settleInFull([settlement])
        #expect(batch.failures.map(\.reason) == [])
    }

    /// Coins, as a signed transaction states them on a day, refunded as a share of their price.
    func coins(signedOn day: Double, refunded share: Int? = nil, on refundDay: Double = 28) -> [String: Any] {
        var claims = transaction(
            "c1", from: 20, signedOn: day,
            [
                "originalTransactionId": "c1", "productId": "coins", "type": "Consumable",
                "originalPurchaseDate": at(20),
            ])
        for key in ["expiresDate", "webOrderLineItemId", "subscriptionGroupIdentifier"] { claims[key] = nil }
        if let share {
            claims["revocationDate"] = at(refundDay)
            claims["revocationPercentage"] = share
        }
        return claims
    }

    /// The same coins in a history.
    func coinsRow(readOn day: Double, refunded share: Int? = nil, on refundDay: Double = 28) -> TransactionRow {
        var row = TransactionRow(
            path: "history[0]", source: .signedText, asOf: Instant(milliseconds: at(day)), transactionID: "c1",
            originalTransactionID: "c1", productID: "coins", quantity: 1,
            purchasedAt: Instant(milliseconds: at(20)),
            cancelledAt: share.map { _ in Instant(milliseconds: at(refundDay)) })
        row.revocationPercentage = share
        return row
    }

    /// Has verifyReceipt answer on a day: the customer finished the coins, and the receipt holds them as the device had them; or
    /// Apple's own list holds them, too, where they may be refunded.
    func deviceAnswer(on day: Double, isListed: Bool = false, refundedOn refundDay: Double? = nil) async throws {
        func coins(_ more: String = "") -> String {
            """
            {"quantity": "1", "product_id": "coins", "transaction_id": "c1", "original_transaction_id": "c1",
            "purchase_date_ms": "\(at(20))", "original_purchase_date_ms": "\(at(20))"\(more)}
            """
        }
        let listed = refundDay.map {
            coins(", \"cancellation_date_ms\": \"\(at($0))\", \"cancellation_reason\": \"1\"")
        }
        store.say(
            """
            {"status": 0, "environment": "Production", "receipt": {"bundle_id": "\(SignedApp.bundleID)",
            "request_date_ms": "\(at(day))", "receipt_creation_date_ms": "\(at(20.1))", "in_app": [\(coins())]},
            "latest_receipt_info": [\(listed ?? (isListed ? coins() : ""))]}
            """)
        _ = try await tracker.check(receipt)
    }

    /// A notification of a refund of half the price.
    func refund() throws -> String {
        try notification("REFUND", status: nil, transaction: coins(signedOn: 28.01, refunded: 50_000), signedOn: 28.01)
    }

    /// What is known of the refund: whether there is one, whether answers showed its share, and whether one took it back.
    func refunds() async throws -> [String] {
        try await rows(
            """
            SELECT concat_ws(' ', revoked_at IS NOT NULL, ledger.shown_percentage(facts) IS NOT DISTINCT FROM 50000,
                             facts ? 'refund_retracted_at_ms') AS line FROM ledger.purchase
            """)
    }
}
