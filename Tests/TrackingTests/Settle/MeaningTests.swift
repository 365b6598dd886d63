import Testing

@testable import Subscriptions
@testable import Tracking

/// An answer with the meaning of the last one is not read in full, so that a property which the meaning leaves out would
/// never change. Each property of a row is changed alone; a new one has no change here, and fails.
@Suite("Whatever an answer states is part of its meaning")
struct MeaningTests {
    private typealias Change<Part> = (name: String, change: @Sendable (inout Part) -> Void)

    private static let instant = Instant(milliseconds: 1_800_000_000_000)
    private static let row = TransactionRow(
        path: "latest_receipt_info[0]", source: .latestReceiptInfo, asOf: instant, transactionID: "1",
        originalTransactionID: "1", productID: "gold", purchasedAt: instant, expiresAt: instant + .days(30))
    private static let renewal = RenewalRow(
        path: "pending_renewal_info[0]", asOf: instant, originalTransactionID: "1",
        renewal: Renewal(productID: "gold"))

    private static let rowChanges: [Change<TransactionRow>] = [
        ("source", { $0.source = .deviceReceipt }), ("transactionID", { $0.transactionID = "2" }),
        ("originalTransactionID", { $0.originalTransactionID = "2" }),
        ("webOrderLineItemID", { $0.webOrderLineItemID = "2" }), ("productID", { $0.productID = "silver" }),
        ("quantity", { $0.quantity = 2 }), ("purchasedAt", { $0.purchasedAt = instant + .days(1) }),
        ("expiresAt", { $0.expiresAt = nil }),
        ("cancelledAt", { $0.cancelledAt = instant }), ("cancellationReason", { $0.cancellationReason = "1" }),
        ("isUpgraded", { $0.isUpgraded = true }),
    ]

    private static let detailChanges: [Change<PeriodDetails>] = [
        ("originalPurchasedAt", { $0.originalPurchasedAt = said(instant) }), ("isTrial", { $0.isTrial = said(false) }),
        ("isIntro", { $0.isIntro = said(false) }), ("promotionalOfferID", { $0.promotionalOfferID = said("o") }),
        ("offerCodeRefName", { $0.offerCodeRefName = said("o") }), ("groupID", { $0.groupID = said("2000") }),
        ("ownership", { $0.ownership = said(.purchased) }), ("appAccountToken", { $0.appAccountToken = said("t") }),
        ("price", { $0.price = said(Price(milliunits: 990, currency: "EUR")) }),
        ("revocationPercentage", { $0.revocationPercentage = said(0) }),
        ("sale", { $0.sale = said(Sale(plan: "MONTHLY")) }),
    ]

    private static func said<Value>(_ value: Value) -> Fact<Value> { Fact(value, origin: .row) }

    private static let saleChanges: [Change<Sale>] = [
        ("plan", { $0.plan = "x" }), ("payment", { $0.payment = nil }), ("seats", { $0.seats = nil }),
        ("isOneOfSeveral", { $0.isOneOfSeveral = true }), ("revocationType", { $0.revocationType = "x" }),
    ]

    private static let paymentChanges: [Change<Sale.Payment>] = [
        ("number", { $0.number = 2 }), ("total", { $0.total = 2 }),
        ("termEndsAt", { $0.termEndsAt = instant + .days(1) }), ("termPrice", { $0.termPrice = nil }),
    ]

    private static let seatChanges: [Change<Sale.Seats>] = [
        ("count", { $0.count = 2 }), ("revoked", { $0.revoked = 1 }),
    ]

    private static let renewalChanges: [Change<Renewal>] = [
        ("productID", { $0.productID = "silver" }), ("renewsToProductID", { $0.renewsToProductID = "silver" }),
        ("willRenew", { $0.willRenew = false }), ("expirationIntent", { $0.expirationIntent = "1" }),
        ("inBillingRetry", { $0.inBillingRetry = false }), ("graceExpiresAt", { $0.graceExpiresAt = instant }),
        ("isInGraceByStatus", { $0.isInGraceByStatus = false }),
        ("priceConsentStatus", { $0.priceConsentStatus = "0" }),
        ("priceIncreaseStatus", { $0.priceIncreaseStatus = "0" }),
        ("promotionalOfferID", { $0.promotionalOfferID = "o" }), ("offerCodeRefName", { $0.offerCodeRefName = "o" }),
        ("term", { $0.term = TermWill() }),
    ]

    private static let willChanges: [Change<TermWill>] = [
        ("renews", { $0.renews = nil }), ("productID", { $0.productID = nil }), ("plan", { $0.plan = nil }),
    ]

    /// Expects that each change of one property is another meaning, and that there is one for each property but `apart`.
    private func expectAll<Part>(
        _ changes: [Change<Part>], of part: Part, apart: Set<String> = [],
        in evidence: (Part) -> ([TransactionRow], [RenewalRow])
    ) {
        func meaning(_ part: Part) -> MeaningDigest {
            let (transactions, renewals) = evidence(part)
            return MeaningDigest(
                of: .verified(
                    Evidence(
                        environment: .production, asOf: Self.instant, transactions: transactions, renewals: renewals)))
        }
        let names = Set(Mirror(reflecting: part).children.compactMap(\.label))
        #expect(names.subtracting(apart) == Set(changes.map(\.name)), "\(Part.self)")
        var seen = [meaning(part): "the same"]
        for (name, change) in changes {
            var changed = part
            change(&changed)
            let same = seen.updateValue(name, forKey: meaning(changed))
            #expect(same == nil, "\(Part.self).\(name) means what \(same ?? "") means")
        }
    }

    @Test("Each property of a transaction, changed alone, is another meaning; its place, clock and notation are not")
    func transactions() {
        expectAll(Self.rowChanges, of: Self.row, apart: ["path", "asOf", "_details", "expiryForm", "cancellationForm"])
        {
            ([$0], [])
        }
        expectAll(Self.detailChanges, of: PeriodDetails(), apart: ["replacedBy", "arrival"]) { details in
            var row = Self.row
            row.details = details
            return ([row], [])
        }
        let payment = Sale.Payment(number: 1, total: 12, termEndsAt: Self.instant, termPrice: 990)
        let sale = Sale(plan: "MONTHLY", payment: payment, seats: Sale.Seats(count: 5))
        func row(_ sale: Sale) -> [TransactionRow] {
            var row = Self.row
            row.sale = sale
            return [row]
        }
        expectAll(Self.saleChanges, of: sale) { (row($0), []) }
        expectAll(Self.paymentChanges, of: payment) { (row(Sale(payment: $0)), []) }
        expectAll(Self.seatChanges, of: Sale.Seats(count: 5)) { (row(Sale(seats: $0)), []) }
    }

    @Test("Each property of a renewal, changed alone, is another meaning")
    func renewals() {
        func row(_ renewal: Renewal) -> [RenewalRow] {
            var row = Self.renewal
            row.renewal = renewal
            return [row]
        }
        let rowChanges: [Change<RenewalRow>] = [
            ("originalTransactionID", { $0.originalTransactionID = "2" }),
            ("renewal", { $0.renewal = Renewal(productID: "silver") }),
        ]
        expectAll(rowChanges, of: Self.renewal, apart: ["path", "asOf", "graceForm"]) { ([], [$0]) }
        expectAll(Self.renewalChanges, of: Self.renewal.renewal) { ([], row($0)) }
        let will = TermWill(renews: true, productID: "gold", plan: "MONTHLY")
        expectAll(Self.willChanges, of: will) { ([], row(Renewal(productID: "gold", term: $0))) }
    }
}
