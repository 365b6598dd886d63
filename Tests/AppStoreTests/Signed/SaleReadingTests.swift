import Foundation
import Subscriptions
import Testing

@testable import AppStore

@Suite("What a signed transaction states of its sale is read, and bad input invents no money") struct SaleReadingTests {
    private static var payment: [String: Any] {
        [
            "transactionId": "7", "originalTransactionId": "5", "webOrderLineItemId": "9", "productId": "yearly",
            "purchaseDate": 1_780_000_000_000, "expiresDate": 1_782_592_000_000, "signedDate": 1_780_000_000_000,
            "inAppOwnershipType": "PURCHASED", "price": 10_990, "currency": "EUR", "billingPlanType": "MONTHLY",
            "commitmentInfo": [
                "billingPeriodNumber": 2, "totalBillingPeriods": 12, "commitmentExpiresDate": 1_808_000_000_000,
                "commitmentPrice": 131_880,
            ],
        ]
    }

    private static var group: [String: Any] {
        [
            "transactionId": "7", "originalTransactionId": "5", "webOrderLineItemId": "9", "productId": "team",
            "purchaseDate": 1_780_000_000_000, "expiresDate": 1_782_592_000_000, "signedDate": 1_780_000_000_000,
            "inAppOwnershipType": "PURCHASED", "price": 3_666, "currency": "EUR", "quantity": 3,
            "multiSeatInfo": ["priceTiers": [["price": 3_000, "quantity": 1], ["price": 4_000, "quantity": 2]]],
        ]
    }

    private func row(_ claims: [String: Any], _ change: [String: Any] = [:]) throws -> TransactionRow {
        let payload = try JSONSerialization.data(withJSONObject: claims.merging(change) { $1 })
        return try #require(SignedTransaction(payload: Array(payload))).row
    }

    private func renewal(
        _ claims: [String: Any], beside transaction: [String: Any]? = nil
    ) throws -> Renewal {
        var text: [String: Any] = [
            "originalTransactionId": "5", "productId": "yearly", "autoRenewProductId": "yearly", "autoRenewStatus": 1,
            "signedDate": 1_780_000_000_000,
        ]
        text.merge(claims) { $1 }
        let signed = try #require(SignedRenewal(payload: Array(JSONSerialization.data(withJSONObject: text))))
        let beside = try transaction.map {
            try #require(SignedTransaction(payload: Array(JSONSerialization.data(withJSONObject: $0))))
        }
        return signed.row(status: .active, beside: beside).renewal
    }

    @Test("A payment of a term has its number, the end of the term and the price of one payment")
    func payments() throws {
        let row = try self.row(Self.payment)
        #expect(
            row.sale
                == Sale(
                    plan: "MONTHLY",
                    payment: Sale.Payment(
                        number: 2, total: 12, termEndsAt: Instant(milliseconds: 1_808_000_000_000), termPrice: 131_880))
        )
        #expect(row.price == Price(milliunits: 10_990, currency: "EUR"))
        #expect(
            try self.row(Self.payment, ["billingPlanType": "BILLED_UPFRONT", "commitmentInfo": NSNull()]).sale?.plan
                == "BILLED_UPFRONT")
    }

    @Test("A group costs what its tiers add up to, and names the seats that came back")
    func groups() throws {
        let row = try self.row(Self.group)
        #expect(row.sale == Sale(seats: Sale.Seats(count: 3)) && row.quantity == 3)
        #expect(row.price == Price(milliunits: 11_000, currency: "EUR"), "not the average times the seats")
        let tiers = (Self.group["multiSeatInfo"] as? [String: Any])?["priceTiers"] ?? []
        let returned = try self.row(
            Self.group,
            [
                "multiSeatInfo": ["priceTiers": tiers, "revokedSeatQuantity": 2] as [String: Any],
                "additionalTransactionReason": "SEAT_ADDITION",
            ])
        #expect(returned.sale == Sale(seats: Sale.Seats(count: 3, revoked: 2), isOneOfSeveral: true))
        #expect(returned.cancelledAt == nil && returned.webOrderLineItemID == nil)
        #expect(returned.price?.milliunits == 11_000)
    }

    @Test("A currency has three letters; beside any other the amount is not known")
    func currencies() throws {
        let none: [Any] = [5, true, "usd!", "", "US", "USDT", "12U", "ÄÖÜ", ["USD"], ["a": 1], NSNull()]
        for currency in none {
            #expect(try row(Self.payment, ["currency": currency]).price == Price(milliunits: nil, currency: ""))
        }
        #expect(try row(Self.payment, ["currency": "eur"]).price == Price(milliunits: 10_990, currency: "EUR"))
        #expect(try row(Self.payment, ["currency": "usd!", "price": NSNull()]).price == nil)
    }

    @Test("Claims that contradict each other are left out; dates and plan stay, and no money is invented")
    func badInput() throws {
        let terms: [[String: Any]] = [
            ["billingPeriodNumber": 13, "totalBillingPeriods": 12, "commitmentExpiresDate": 1_808_000_000_000],
            ["billingPeriodNumber": 0, "totalBillingPeriods": 12, "commitmentExpiresDate": 1_808_000_000_000],
            ["billingPeriodNumber": 2, "totalBillingPeriods": 12, "commitmentExpiresDate": 1_782_591_999_999],
            ["billingPeriodNumber": "two", "totalBillingPeriods": 12, "commitmentExpiresDate": 1_808_000_000_000],
            ["billingPeriodNumber": 2, "totalBillingPeriods": -1, "commitmentExpiresDate": 1_808_000_000_000],
            ["billingPeriodNumber": 2, "totalBillingPeriods": 12],
        ]
        for term in terms {
            let row = try self.row(Self.payment, ["commitmentInfo": term])
            #expect(row.sale == Sale(plan: "MONTHLY"), "\(term)")
            #expect(row.expiresAt == Instant(milliseconds: 1_782_592_000_000))
        }
        #expect(try self.row(Self.payment, ["commitmentInfo": "twelve"]).sale == Sale(plan: "MONTHLY"))
        #expect(
            try row(Self.payment, ["billingPlanType": "BY_MOON", "commitmentInfo": [1]]).sale == Sale(plan: "BY_MOON"))
        let seats: [[String: Any]] = [
            ["priceTiers": [["price": 3_000, "quantity": 1]]], ["priceTiers": [["price": -1, "quantity": 3]]],
            ["priceTiers": [["price": 3_000, "quantity": 4]]], ["priceTiers": [["quantity": 3]]], ["priceTiers": 3],
            ["priceTiers": [["price": 3_000, "quantity": -3], ["price": 1, "quantity": 6]]],
            ["priceTiers": [["price": Int64.max, "quantity": 3]]], [:],
        ]
        for info in seats {
            let row = try self.row(Self.group, ["multiSeatInfo": info])
            #expect(row.price == Self.unreadable && row.sale?.seats == Sale.Seats(count: 3), "\(info)")
        }
        for revoked in [-1, 4, 1.5, 1_000_000_000] {
            let tiers: [[String: Any]] = [["price": 3_000, "quantity": 3]]
            let info: [String: Any] = ["priceTiers": tiers, "revokedSeatQuantity": revoked]
            let row = try self.row(Self.group, ["multiSeatInfo": info])
            #expect(row.sale?.seats?.revoked == 0 && row.price?.milliunits == 9_000)
        }
        #expect(
            try row(
                Self.payment,
                [
                    "revocationDate": 1_781_000_000_000, "revocationType": "REFUND_PRORATED",
                    "revocationPercentage": 100_001,
                ]
            ).revocationPercentage == nil)
    }

    /// A price that is stated and cannot be read.
    private static let unreadable = Price(milliunits: nil, currency: "EUR")

    @Test("Numbers are read as they are or not at all, and no other price takes the place of one that is not read")
    func numbers() throws {
        for price in [-10_990, 10_990.5, 1e18, 1_000_000_000_001, "much", true, [10_990]] as [Any] {
            #expect(try row(Self.payment, ["price": price]).price == Self.unreadable, "\(price)")
        }
        #expect(try row(Self.payment, ["price": 1_000_000_000_000]).price?.milliunits == 1_000_000_000_000)
        #expect(try row(Self.payment, ["price": NSNull()]).price == nil, "none is stated")
        #expect(try row(Self.payment, ["currency": NSNull()]).price == Price(milliunits: nil, currency: ""))
        for quantity in [-3, 0, 2.5, 1_000_001, "two"] as [Any] {
            let group = try row(Self.group, ["quantity": quantity])
            #expect(group.price == Self.unreadable && group.sale == nil && group.quantity == 1, "\(quantity)")
            #expect(try row(Self.payment, ["quantity": quantity]).price == Self.unreadable, "\(quantity)")
        }
        for number in [3.5, 2.4, "3.5", true] as [Any] {
            let term: [String: Any] = [
                "billingPeriodNumber": number, "totalBillingPeriods": 12, "commitmentExpiresDate": 1_808_000_000_000,
            ]
            #expect(try row(Self.payment, ["commitmentInfo": term]).sale == Sale(plan: "MONTHLY"), "\(number)")
        }
        #expect(try row(Self.group, ["multiSeatInfo": 3]).price == Self.unreadable)
        #expect(
            try row(Self.payment, ["revocationDate": 1_781_000_000_000, "revocationPercentage": 50_000.5])
                .revocationPercentage == nil)
    }

    @Test("An id that was asked about is none of another transaction that began at the same instant")
    func asked() throws {
        func text(_ id: String, _ change: [String: Any]) throws -> String {
            let claims = Self.group.merging(["transactionId": id]) { $1 }.merging(change) { $1 }
            let payload = try JSONSerialization.data(withJSONObject: claims).base64EncodedString()
                .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
            return "h.\(payload).s"
        }
        func transactions(_ change: [String: Any]) throws -> Set<TransactionID> {
            let (listed, named) = (try text("7", change), try text("8", change))
            let json =
                #"{"asked":"8","environment":"Production","history":[{"signedTransactions":["\#(listed)"]}],"#
                + #""transaction":{"signedTransactionInfo":"\#(named)"}}"#
            let contents = try #require(ServerContents(reading: Array(json.utf8)))
            let evidence = try #require(
                Evidence(
                    in: contents, bundleID: "com.example.app", claimedAt: Instant(milliseconds: 1_780_000_000_000)))
            return Set(evidence.transactions.map(\.transactionID))
        }
        #expect(try transactions([:]) == ["7", "8"], "the same line item under another id")
        #expect(try transactions(["additionalTransactionReason": "SEAT_ADDITION"]) == ["7"])
    }

    @Test("A revocation keeps its kind; amounts of Advanced Commerce become a share of the price")
    func revocations() throws {
        let date = 1_781_000_000_000
        func share(_ change: [String: Any]) throws -> String {
            let row = try self.row(Self.payment, change.merging(["revocationDate": date]) { $1 })
            return "\(row.sale?.revocationType ?? "-") \(row.revocationPercentage ?? -1)"
        }
        #expect(try share(["revocationType": "REFUND_FULL"]) == "REFUND_FULL 100000")
        #expect(
            try share(["revocationType": "REFUND_PRORATED", "revocationPercentage": 50_000]) == "REFUND_PRORATED 50000")
        #expect(try share([:]) == "- -1")
        #expect(try share(["revocationType": "BUNDLED"]) == "BUNDLED -1")
        // A share in a kind, or for a reason, that is not known is of nothing that is known.
        for kind in ["BUNDLED", "FAMILY_REVOKE", "5"] {
            #expect(try share(["revocationType": kind, "revocationPercentage": 50_000]) == "\(kind) -1")
        }
        #expect(try share(["revocationReason": 9, "revocationPercentage": 20_000]) == "- -1")
        #expect(try share(["revocationReason": 1, "revocationPercentage": 20_000]) == "- 20000")
        let items: [[String: Any]] = [["refunds": [["refundAmount": 2_198], ["refundAmount": 3_297]]], ["SKU": "x"]]
        #expect(try share(["advancedCommerceInfo": ["items": items]]) == "REFUND_PRORATED 50000")
        #expect(try share(["advancedCommerceInfo": ["items": [[String: Any]]()]]) == "ADVANCED_COMMERCE -1")
        let unreadable: [[String: Any]] = [["refunds": [["refundAmount": 2_198], ["refundAmount": -1]]]]
        #expect(try share(["advancedCommerceInfo": ["items": unreadable]]) == "ADVANCED_COMMERCE -1")
    }

    @Test("A one-time purchase whose amount is unknown is revoked for a reason that gives no money back")
    func purchases() throws {
        func reason(_ change: [String: Any]) throws -> String? {
            var claims = Self.payment
            for name in ["expiresDate", "billingPlanType", "commitmentInfo"] { claims[name] = nil }
            claims.merge(["revocationDate": 1_781_000_000_000, "revocationReason": 1]) { $1 }
            return try row(claims, change).cancellationReason
        }
        #expect(try reason([:]) == "1")
        #expect(try reason(["revocationType": "REFUND_FULL"]) == "1")
        #expect(try reason(["revocationType": "REFUND_PRORATED", "revocationPercentage": 50_000]) == "1")
        #expect(try reason(["revocationType": "REFUND_PRORATED"]) == "REFUND_PRORATED")
        #expect(
            try reason(["revocationType": "REFUND_PRORATED", "revocationPercentage": 100_001]) == "REFUND_PRORATED")
        #expect(try reason(["revocationType": "BUNDLED", "revocationPercentage": 50_000]) == "BUNDLED")
        #expect(try reason(["revocationType": "FAMILY_REVOKE"]) == "FAMILY_REVOKE")
        #expect(try reason(["revocationType": "FAMILY_REVOKE", "inAppOwnershipType": "FAMILY_SHARED"]) == "1")
        #expect(try reason(["advancedCommerceInfo": ["items": [[String: Any]]()]]) == "ADVANCED_COMMERCE")
    }

    @Test("Within a term the renewal has two wills, and after it none")
    func wills() throws {
        let term: [String: Any] = [
            "commitmentAutoRenewStatus": 0, "commitmentAutoRenewProductId": "monthly",
            "commitmentRenewalBillingPlanType": "BILLED_UPFRONT",
        ]
        let within = try renewal(["commitmentInfo": term], beside: Self.payment)
        #expect(within.willRenew == true && within.isWanted == false)
        #expect(within.term == TermWill(renews: false, productID: "monthly", plan: "BILLED_UPFRONT"))
        #expect(try renewal([:], beside: Self.payment).term == TermWill(), "the term is over")
        #expect(try renewal(["renewalBillingPlanType": "BILLED_UPFRONT"]).term == TermWill())
        #expect(try renewal(["renewalBillingPlanType": "MONTHLY"]).term == TermWill(plan: "MONTHLY"))
        #expect(try renewal([:]).term == nil, "a text of a time without plans denies nothing")
    }
}
