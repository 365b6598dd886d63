import AppStoreSimulator
import Foundation
import Testing

@testable import AppStore

@Suite("What a version does not read of Apple's texts is named") struct UnreadClaimTests {
    /// A transaction with everything that is published.
    static var transaction: [String: Any] {
        [
            "transactionId": "7", "originalTransactionId": "5", "webOrderLineItemId": "9",
            "bundleId": "com.example.app",
            "productId": "team", "subscriptionGroupIdentifier": "1", "purchaseDate": 1_780_000_000_000,
            "originalPurchaseDate": 1_780_000_000_000, "expiresDate": 1_782_592_000_000, "quantity": 3,
            "type": "Auto-Renewable Subscription", "appAccountToken": "t", "inAppOwnershipType": "PURCHASED",
            "signedDate": 1_780_000_000_000, "revocationReason": 1, "revocationDate": 1_781_000_000_000,
            "revocationType": "REFUND_PRORATED", "revocationPercentage": 50_000, "isUpgraded": true, "offerType": 4,
            "offerIdentifier": "back", "offerDiscountType": "ONE_TIME", "offerPeriod": "P1M",
            "environment": "Production",
            "storefront": "DEU", "storefrontId": "143443", "transactionReason": "RENEWAL", "currency": "EUR",
            "price": 3663, "appTransactionId": "70", "advancedCommerceInfo": ["items": [["anything": 1]]],
            "previousOriginalTransactionId": "4", "billingPlanType": "MONTHLY",
            "commitmentInfo": [
                "billingPeriodNumber": 2, "totalBillingPeriods": 12, "commitmentExpiresDate": 1_808_000_000_000,
                "commitmentPrice": 43_956,
            ],
            "additionalTransactionReason": "SEAT_ADDITION",
            "multiSeatInfo": [
                "invitationManagement": "DEVELOPER", "revokedSeatQuantity": 1,
                "priceTiers": [["price": 3000, "quantity": 1], ["price": 3995, "quantity": 2]],
            ] as [String: Any],
        ]
    }

    static var renewal: [String: Any] {
        [
            "originalTransactionId": "5", "productId": "team", "autoRenewProductId": "team", "autoRenewStatus": 1,
            "expirationIntent": 5, "gracePeriodExpiresDate": 1_782_592_000_000, "isInBillingRetryPeriod": false,
            "priceIncreaseStatus": 0, "offerType": 2, "offerIdentifier": "o", "offerDiscountType": "PAY_AS_YOU_GO",
            "offerPeriod": "P1M", "signedDate": 1_780_000_000_000, "environment": "Sandbox",
            "recentSubscriptionStartDate": 1_780_000_000_000, "renewalDate": 1_782_592_000_000, "renewalPrice": 3663,
            "currency": "EUR", "eligibleWinBackOfferIds": ["a", "b"], "appAccountToken": "t", "appTransactionId": "70",
            "renewalBillingPlanType": "MONTHLY", "renewalQuantity": 3,
            "commitmentInfo": [
                "commitmentAutoRenewStatus": 0, "commitmentAutoRenewProductId": "team",
                "commitmentRenewalDate": 1_808_000_000_000, "commitmentRenewalPrice": 3663,
                "commitmentRenewalBillingPlanType": "BILLED_UPFRONT",
            ] as [String: Any],
            "multiSeatInfo": ["renewalPriceTiers": [["price": 3663, "quantity": 3]]],
        ]
    }

    static var notification: [String: Any] {
        [
            "notificationType": "REFUND", "subtype": "SEATS", "notificationUUID": "u", "version": "2.0",
            "signedDate": 1_780_000_000_000,
            "data": [
                "appAppleId": 1, "bundleId": "com.example.app", "bundleVersion": "1.2", "environment": "Production",
                "signedTransactionInfo": "a.b.c", "signedRenewalInfo": "a.b.c", "status": 1,
                "consumptionRequestReason": "LEGAL",
            ] as [String: Any],
        ]
    }

    private func unread(_ kind: UnreadClaim.Kind, _ text: [String: Any]) throws -> [String] {
        let payload = try JSONSerialization.data(withJSONObject: text, options: .sortedKeys)
        return UnreadClaim.all(in: kind, payload: Array(payload)).map { $0.name + ($0.isUnreadable ? "!" : "") }
    }

    @Test("Everything that is published is read or left on purpose")
    func published() throws {
        #expect(try unread(.transaction, Self.transaction) == [])
        #expect(try unread(.renewal, Self.renewal) == [])
        #expect(try unread(.notification, Self.notification) == [])
        #expect(
            try unread(.transaction, ["quantity": "3", "price": "3663", "isUpgraded": "false", "x": NSNull()]) == [])
    }

    private static func revoked(_ seats: Double) -> [String: Any] {
        let tiers: [[String: Any]] = [["price": 3000, "quantity": 3]]
        return ["multiSeatInfo": ["priceTiers": tiers, "revokedSeatQuantity": seats] as [String: Any]]
    }

    /// The changed members of a transaction, and what is named.
    static var changes: [([String: Any], [String])] {
        [
            (["brandNew": 1], ["transaction.brandNew"]),
            (["brandNew": ["deep": 1]], ["transaction.brandNew"]),
            (["inAppOwnershipType": "BORROWED"], ["transaction.inAppOwnershipType=BORROWED"]),
            (["billingPlanType": "WEEKLY"], ["transaction.billingPlanType=WEEKLY"]),
            (["revocationReason": 2], ["transaction.revocationReason=2"]),
            (["revocationType": "ASSIGNMENT_REVOKE"], ["transaction.revocationType=ASSIGNMENT_REVOKE"]),
            (["additionalTransactionReason": "MORE"], ["transaction.additionalTransactionReason=MORE"]),
            (["billingPlanType": ["MONTHLY"]], ["transaction.billingPlanType!"]),
            (["price": -1], ["transaction.price!"]),
            (["price": "much"], ["transaction.price!"]),
            (["price": 10_990.5], ["transaction.price!"]),
            (["price": 1_000_000_000_001], ["transaction.price!"]),
            (["currency": NSNull()], ["transaction.currency!"]),
            (["currency": 5], ["transaction.currency!"]),
            (["currency": true], ["transaction.currency!"]),
            (["currency": "usd!"], ["transaction.currency!"]),
            (["currency": "US"], ["transaction.currency!"]),
            (["currency": "ÄÖÜ"], ["transaction.currency!"]),
            (["currency": ["USD"]], ["transaction.currency!"]),
            (["storefront": 5], ["transaction.storefront!"]),
            (["storefront": ["DEU"]], ["transaction.storefront!"]),
            (["offerIdentifier": ["back"]], ["transaction.offerIdentifier!"]),
            (["price": true], ["transaction.price!"]),
            (["price": ["3663"]], ["transaction.price!"]),
            (["revocationPercentage": 50_000.5], ["transaction.revocationPercentage!"]),
            (["expiresDate": 1_782_592_000_000.25], []),
            (["revocationPercentage": 100_001], ["transaction.revocationPercentage!"]),
            (["expiresDate": "soon"], ["transaction.expiresDate!"]),
            (["commitmentInfo": "twelve"], ["transaction.commitmentInfo!"]),
            (
                ["commitmentInfo": ["billingPeriodNumber": 13, "totalBillingPeriods": 12]],
                ["transaction.commitmentInfo.billingPeriodNumber!"]
            ),
            (
                ["commitmentInfo": ["billingPeriodNumber": 0, "news": true] as [String: Any]],
                ["transaction.commitmentInfo.billingPeriodNumber!", "transaction.commitmentInfo.news"]
            ),
            (
                ["commitmentInfo": ["commitmentExpiresDate": 1_782_591_999_999]],
                ["transaction.commitmentInfo.commitmentExpiresDate!"]
            ),
            (
                [
                    "commitmentInfo": [
                        "billingPeriodNumber": 1, "totalBillingPeriods": 2_000,
                        "commitmentExpiresDate": 4_000_000_000_000,
                    ]
                ], ["transaction.commitmentInfo!"]
            ),
            (
                ["commitmentInfo": ["billingPeriodNumber": 1, "totalBillingPeriods": 12]],
                ["transaction.commitmentInfo!"]
            ),
            (
                ["multiSeatInfo": ["priceTiers": [["price": 1]]]], ["transaction.multiSeatInfo.priceTiers!"]
            ),
            (
                ["multiSeatInfo": ["priceTiers": [["price": 2_000_000_000_000, "quantity": 3]]]],
                ["transaction.multiSeatInfo.priceTiers[].price!"]
            ),
            (
                ["multiSeatInfo": ["priceTiers": [["price": 900_000_000_000, "quantity": 3]]]],
                ["transaction.multiSeatInfo.priceTiers!"]
            ),
            (
                ["multiSeatInfo": ["priceTiers": [["price": 1, "quantity": 2.5], ["price": 1, "quantity": 1]]]],
                ["transaction.multiSeatInfo.priceTiers[].quantity!"]
            ),
            (["multiSeatInfo": ["invitationManagement": "APPLE"]], ["transaction.multiSeatInfo.priceTiers!"]),
            (["multiSeatInfo": ["invitationManagement": "APPLE"], "inAppOwnershipType": "ASSIGNED"], []),
            (["multiSeatInfo": 3], ["transaction.multiSeatInfo!"]),
            (["quantity": 2.5], ["transaction.multiSeatInfo.priceTiers!", "transaction.quantity!"]),
            (
                ["commitmentInfo": ["billingPeriodNumber": 3.5, "totalBillingPeriods": 12]],
                ["transaction.commitmentInfo.billingPeriodNumber!"]
            ),
            (
                ["quantity": -3],
                [
                    "transaction.multiSeatInfo.priceTiers!", "transaction.multiSeatInfo.revokedSeatQuantity!",
                    "transaction.quantity!",
                ]
            ),
            (revoked(-1), ["transaction.multiSeatInfo.revokedSeatQuantity!"]),
            (revoked(1.5), ["transaction.multiSeatInfo.revokedSeatQuantity!"]),
            (revoked(4), ["transaction.multiSeatInfo.revokedSeatQuantity!"]),
            (
                ["multiSeatInfo": ["priceTiers": [["price": 1, "quantity": 2]]]],
                ["transaction.multiSeatInfo.priceTiers!"]
            ),
            (
                ["multiSeatInfo": ["priceTiers": [["price": -1, "quantity": 3], ["tier": 1]]]],
                ["transaction.multiSeatInfo.priceTiers[].price!", "transaction.multiSeatInfo.priceTiers[].tier"]
            ),
        ]
    }

    @Test("A new claim, a new word and a value of another form are named with their place", arguments: changes.indices)
    func named(_ index: Int) throws {
        let (change, expected) = Self.changes[index]
        #expect(try unread(.transaction, Self.transaction.merging(change) { $1 }).sorted() == expected)
    }

    @Test("New words of renewals and notifications are named")
    func otherKinds() throws {
        #expect(
            try unread(.renewal, Self.renewal.merging(["expirationIntent": 6]) { $1 })
                == ["renewal.expirationIntent=6"])
        #expect(
            try unread(
                .notification, Self.notification.merging(["notificationType": "NEWS", "subtype": "MORE"]) { $1 })
                == ["notification.notificationType=NEWS", "notification.subtype=MORE"])
        #expect(try unread(.notification, ["data": ["status": 6]]) == ["notification.data.status=6"])
    }

    @Test("Any bytes have an end: names are short and few")
    func bounded() throws {
        var many: [String: Any] = [:]
        for number in 0..<1000 { many["claim" + String(repeating: "x", count: number)] = number }
        let names = try unread(.transaction, many)
        #expect(names.count == UnreadClaim.textMax && names.allSatisfy { $0.count <= UnreadClaim.nameMax + 1 })
        for text in ["", "[]", "{", "null", "{\"a\":"] {
            #expect(UnreadClaim.all(in: .transaction, payload: Array(text.utf8)) == [])
        }
        let word = try unread(.transaction, ["type": String(repeating: "y", count: 500)])
        #expect(word.count == 1 && word[0].count < 100)
    }

    @Test("The simulator's texts have nothing unread but the revocation of a seat, which Apple has not published")
    func simulated() throws {
        var options = SimulatorOptions(seed: 6)
        print("seed \(options.seed)")
        (options.customers, options.traits.commitments, options.traits.groups, options.traits.seats) = (
            150, 0.2, 0.2, 0.2
        )
        let store = Simulator(options)
        var names: Set<String> = []
        var count = 0
        for customer in store.receipts() {
            for text in try store.signedTransactions(of: customer.customer) ?? [] {
                let payload = try CompactText(Array(text.signedTransaction.utf8)).payload
                names.formUnion(UnreadClaim.all(in: .transaction, payload: payload).map(\.name))
                count += 1
            }
        }
        #expect(count > 500 && names.isSubset(of: ["transaction.revocationType=ASSIGNMENT_REVOKE"]), "\(names)")
    }
}
