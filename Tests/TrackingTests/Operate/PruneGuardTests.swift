import Testing

@testable import Subscriptions
@testable import Tracking

@Suite("What keeps an answer from being pruned counts every fact, and no path")
struct PruneGuardTests {
    /// The sources of all facts in a value, however deep, and whether any member of it is missing.
    private static func sources(in value: Any) -> (origins: [FactOrigin], missing: [String]) {
        if let origin = value as? FactOrigin { return ([origin], []) }
        var (origins, missing): ([FactOrigin], [String]) = ([], [])
        for child in Mirror(reflecting: value).children {
            let mirror = Mirror(reflecting: child.value)
            if mirror.displayStyle == .optional, mirror.children.isEmpty { missing.append(child.label ?? "") }
            let inner = sources(in: child.value)
            origins += inner.origins
            missing += inner.missing
        }
        return (origins, missing)
    }

    /// Makes facts of different clocks, all in rows of one name.
    private final class Teller {
        private let name: String
        private var clock: Int64 = 1_000

        init(_ name: String) { self.name = name }

        func fact<Value>(_ value: Value) -> Fact<Value> {
            clock += 1
            let form = InstantForm.milliseconds
            return Fact(
                value, origin: FactOrigin(asOf: Instant(milliseconds: clock), path: "\(name)[\(clock)]", form: form))
        }
    }

    private static let now = Instant(milliseconds: 900)

    private static func purchase(_ name: String) -> PurchaseFacts {
        let teller = Teller(name)
        return PurchaseFacts(
            key: PurchaseKey(originalTransactionID: "o", productID: "coins"), asOf: now, transactionIDs: ["o"],
            terms: teller.fact(PurchaseTerms(purchasedAt: now, quantity: 1, transactionID: "o")),
            revocation: teller.fact(Revocation(cancelledAt: now, reason: "1")), ownership: teller.fact(.purchased),
            appAccountToken: teller.fact("token"), price: teller.fact(Price(milliunits: 990, currency: "EUR")),
            revocationPercentage: teller.fact(50_000), refundShown: teller.fact(50_000))
    }

    private static func subscription(_ name: String) -> SubscriptionFacts {
        let teller = Teller(name)
        var details = PeriodDetails()
        details.originalPurchasedAt = teller.fact(now)
        details.isTrial = teller.fact(true)
        details.isIntro = teller.fact(true)
        details.promotionalOfferID = teller.fact("offer")
        details.offerCodeRefName = teller.fact("code")
        details.groupID = teller.fact("group")
        details.ownership = teller.fact(.purchased)
        details.appAccountToken = teller.fact("token")
        details.price = teller.fact(Price(milliunits: 990, currency: "EUR"))
        details.revocationPercentage = teller.fact(50_000)
        details.sale = teller.fact(
            Sale(
                plan: Sale.monthly, payment: Sale.Payment(number: 1, total: 12, termEndsAt: now, termPrice: 11_880),
                seats: Sale.Seats(count: 2, revoked: 1), isOneOfSeveral: true, revocationType: "REFUND_PRORATED"))
        details.replacedBy = teller.fact("other")
        details.arrival = teller.fact(now).origin
        let will = TermWill(renews: true, productID: "monthly", plan: Sale.monthly)
        let said = teller.fact(
            Renewal(
                productID: "monthly", renewsToProductID: "monthly", willRenew: true, expirationIntent: "2",
                inBillingRetry: true, graceExpiresAt: now, isInGraceByStatus: true, priceConsentStatus: "0",
                priceIncreaseStatus: "0", promotionalOfferID: "next", offerCodeRefName: "next", term: will))
        var renewal = RenewalFacts(said)
        renewal.renewsToProductID = teller.fact("monthly")
        renewal.willRenew = teller.fact(true)
        renewal.inBillingRetry = teller.fact(true)
        renewal.graceExpiresAt = teller.fact(now)
        renewal.graceByStatus = teller.fact(true)
        renewal.term = teller.fact(will)
        renewal.gaveUp = teller.fact(true)
        renewal.gaveUpAt = Instant(milliseconds: 2_000)
        let period = Period(
            id: 1, webOrderLineItemID: "w", transactionIDs: ["t"],
            terms: teller.fact(Terms(productID: "monthly", purchasedAt: now, expiresAt: now + .days(30), quantity: 1)),
            revocation: teller.fact(Revocation(cancelledAt: now, reason: "1")), upgrade: teller.fact(true),
            details: details, renewal: renewal)
        return SubscriptionFacts(originalTransactionID: "o", asOf: now, periods: [period], renewal: said)
    }

    @Test("No path of a purchase is left, and every fact's clock counts")
    func purchases() {
        let facts = Self.purchase("a")
        let (origins, missing) = Self.sources(in: facts)
        // What is missing here only hides a fact from this test: fill it in above.
        #expect(missing == [] && origins.count == 7, "\(missing)")
        #expect(Self.sources(in: facts.withoutPaths).origins.allSatisfy { $0.path.isEmpty })
        #expect(facts.withoutPaths == Self.purchase("b").withoutPaths && facts != Self.purchase("b"))
        #expect(facts.clocks == Set(origins.map(\.asOf) + [facts.asOf]))
    }

    @Test("No path of a subscription is left, and every fact's clock counts")
    func subscriptions() {
        let facts = Self.subscription("a")
        let (origins, missing) = Self.sources(in: facts)
        // The row of a renewal leaves to the facts beside it what a newer row need not repeat.
        let elsewhere = [
            "renewsToProductID", "willRenew", "inBillingRetry", "graceExpiresAt", "isInGraceByStatus", "term",
        ]
        #expect(missing == elsewhere, "\(missing)")
        #expect(origins.count == 25)
        let (left, right) = (facts.records.map(\.withoutPaths), Self.subscription("b").records.map(\.withoutPaths))
        #expect(left == right && facts.records != Self.subscription("b").records)
        #expect(facts.clocks == Set(origins.map(\.asOf) + [facts.asOf, Instant(milliseconds: 2_000)]))
    }
}
