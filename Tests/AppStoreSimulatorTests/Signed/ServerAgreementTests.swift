import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("The Server API says what verifyReceipt and the truth say") struct ServerAgreementTests {
    static let seed: UInt64 = 11
    private let hand = ManualClock()

    private func population() throws -> ServerClient {
        print("seed \(Self.seed)")
        var options = SimulatorOptions(seed: Self.seed)
        options.customers = 120
        options.sandboxCustomers = 20
        options.traits.quirk = 0
        options.traits.legacyReceipt = 0
        options.traits.quantities = 0.3
        options.traits.seasons = 0.1
        (options.traits.commitments, options.traits.groups, options.traits.seats) = (0.15, 0.15, 0.1)
        return try ServerClient(Simulator(options, clock: hand.clock), hand)
    }

    @Test("Every transaction of the history is the row of verifyReceipt with its id")
    func rows() throws {
        let client = try population()
        var (compared, revoked, bought) = (0, 0, 0)
        for _ in 0..<4 {
            hand.move(seconds: 41)
            for customer in client.store.receipts() {
                let answer = try client.store.ask(customer.receipt, at: customer.environment)
                let id = customer.originalTransactionID
                let pages = try client.pages("v2/history/\(id)", at: customer.environment)
                guard answer.status == 0 else {
                    #expect(pages.first?.errorCode == 4_040_001, "the account is deleted")
                    continue
                }
                let found = pages.flatMap(\.transactions)
                let isFinished = try #require(client.store.truth(of: customer.customer)).deliveries
                    .filter { !$0.isListed }.map(\.transactionID)
                let listed = found.filter { !isFinished.contains($0.text("transactionId") ?? "") }
                #expect(Set(found.map { $0.text("transactionId") }).count == found.count)
                let rows = answer.latestRows
                #expect(listed.count == rows.count, "\(customer.customer)")
                for claims in listed {
                    let row = try #require(rows.row(claims.text("transactionId")))
                    #expect(Facts(claims: claims) == Facts(row: row), "\(customer.customer)")
                    compared += 1
                    revoked += claims["revocationDate"] == nil ? 0 : 1
                    bought += claims.text("type") == "Auto-Renewable Subscription" ? 0 : 1
                }
            }
        }
        #expect(compared > 2000 && revoked > 50 && bought > 50, "\(compared) \(revoked) \(bought)")
    }

    @Test("Statuses name every subscription of the truth with its status, newest period and renewal")
    func statuses() throws {
        let client = try population()
        var seen = Set<Int>()
        for _ in 0..<6 {
            hand.move(seconds: 23.4)
            for customer in client.store.receipts() {
                let truth = try #require(client.store.truth(of: customer.customer))
                guard !truth.accountDeleted, !truth.subscriptions.isEmpty else { continue }
                let pending = try client.store.ask(customer.receipt, at: customer.environment)["pending_renewal_info"]
                let answer = try client.call(
                    "GET", "v1/subscriptions/\(customer.originalTransactionID)", at: customer.environment)
                #expect(answer.json.text("environment") == customer.environment.rawValue)
                #expect((answer.json["appAppleId"] == nil) == (customer.environment == .sandbox))
                let last = (answer.json["data"] as? [[String: Any]] ?? []).flatMap {
                    $0["lastTransactions"] as? [[String: Any]] ?? []
                }
                #expect(last.count == truth.subscriptions.count)
                for subscription in truth.subscriptions {
                    let one = try #require(
                        last.first { $0.text("originalTransactionId") == subscription.originalTransactionID })
                    #expect(one["status"] as? Int == subscription.appleStatus.rawValue)
                    seen.insert(subscription.appleStatus.rawValue)
                    let transaction = SignedClaims.of(one.text("signedTransactionInfo") ?? "")
                    #expect(transaction.text("transactionId") == subscription.periods.last?.transactionID)
                    let renewal = SignedClaims.of(one.text("signedRenewalInfo") ?? "")
                    let row = (pending as? [[String: Any]])?.first {
                        $0.text("original_transaction_id") == subscription.originalTransactionID
                    }
                    #expect(Renewal(claims: renewal) == Renewal(row: try #require(row)))
                }
            }
        }
        #expect(seen == [1, 2, 3, 4, 5], "\(seen)")
    }
}

/// What a row and a signed transaction both say.
private struct Facts: Equatable {
    let texts: [String?]
    let numbers: [Int64?]
    let isUpgraded: Bool
    let offer: String?

    init(row: [String: Any]) {
        texts = [
            "transaction_id", "original_transaction_id", "product_id", "web_order_line_item_id",
            "subscription_group_identifier", "in_app_ownership_type", "app_account_token",
        ].map { row.text($0) }
        numbers = [
            "quantity", "purchase_date_ms", "original_purchase_date_ms", "expires_date_ms", "cancellation_date_ms",
            "cancellation_reason",
        ].map { row.text($0).flatMap { Int64($0) } }
        isUpgraded = row.text("is_upgraded") == "true"
        offer =
            row.text("is_trial_period") == "true"
            ? "FREE_TRIAL"
            : row.text("is_in_intro_offer_period") == "true"
                ? "introduction" : row.text("promotional_offer_id") ?? row.text("offer_code_ref_name")
    }

    init(claims: [String: Any]) {
        texts = [
            "transactionId", "originalTransactionId", "productId", "webOrderLineItemId",
            "subscriptionGroupIdentifier", "inAppOwnershipType", "appAccountToken",
        ].map { claims.text($0) }
        numbers = [
            claims["multiSeatInfo"] == nil ? "quantity" : "one", "purchaseDate", "originalPurchaseDate", "expiresDate",
            "revocationDate", "revocationReason",
        ].map { claims.number($0) ?? ($0 == "one" ? 1 : nil) }
        isUpgraded = claims["isUpgraded"] as? Bool ?? false
        switch claims["offerType"] as? Int {
        case 1 where claims.text("offerDiscountType") == "FREE_TRIAL": offer = "FREE_TRIAL"
        case 1: offer = "introduction"
        default: offer = claims.text("offerIdentifier")
        }
    }
}

/// What a pending row and renewal information both say.
private struct Renewal: Equatable {
    let texts: [String?]
    let grace: Int64?
    let offer: String?

    init(row: [String: Any]) {
        texts =
            [
                "original_transaction_id", "auto_renew_product_id", "product_id", "auto_renew_status",
                "expiration_intent",
                "price_increase_status",
            ].map { row.text($0) } + [row.text("is_in_billing_retry_period") == "1" ? "1" : "0"]
        grace = row.text("grace_period_expires_date_ms").flatMap { Int64($0) }
        offer = row.text("promotional_offer_id") ?? row.text("offer_code_ref_name")
    }

    init(claims: [String: Any]) {
        texts =
            ["originalTransactionId", "autoRenewProductId", "productId"].map { claims.text($0) }
            + ["autoRenewStatus", "expirationIntent", "priceIncreaseStatus"].map { claims.number($0).map(String.init) }
            + [claims["isInBillingRetryPeriod"] as? Bool == true ? "1" : "0"]
        grace = claims.number("gracePeriodExpiresDate")
        offer = claims.text("offerIdentifier")
    }
}
