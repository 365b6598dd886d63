/// What a signed transaction states of its sale beyond a row of verifyReceipt (Apple: "JWSTransactionDecodedPayload"), taken
/// from one text as a whole. Unknown words stay raw.
package struct Sale: Hashable, Sendable, FactValue {
    /// One payment of a term of payments (Apple: "commitmentInfo").
    package struct Payment: Hashable, Sendable {
        /// Its number in the term, from 1.
        package var number: Int
        /// The payments of the term.
        package var total: Int
        /// The end of the term, as known with this payment. It grants nothing.
        package var termEndsAt: Instant
        /// The price of the whole term in thousandths of the currency.
        package var termPrice: Int64?

        /// Creates a payment from its parts.
        package init(number: Int, total: Int, termEndsAt: Instant, termPrice: Int64? = nil) {
            (self.number, self.total, self.termEndsAt, self.termPrice) = (number, total, termEndsAt, termPrice)
        }

        /// Whether the term has no further payment.
        package var isLast: Bool { number >= total }
    }

    /// The seats of a group's transaction (Apple: "multiSeatInfo"). Its price is that of all of them.
    package struct Seats: Hashable, Sendable {
        /// The seats bought.
        package var count: Int
        /// How many of them Apple refunded.
        package var revoked: Int

        /// Creates seats from their parts.
        package init(count: Int, revoked: Int = 0) { (self.count, self.revoked) = (count, revoked) }
    }

    /// The ways to pay whose meaning this version knows.
    package static let (monthly, upfront) = ("MONTHLY", "BILLED_UPFRONT")

    /// Returns our word for a plan of Apple's, `upfront` or `monthly`; nil for one that is not known.
    package static func word(of plan: String) -> String? {
        switch plan {
        case upfront: "upfront"
        case monthly: "monthly"
        default: nil
        }
    }

    /// `billingPlanType`, raw; nil is upfront.
    package var plan: String?
    /// The payment of a term; nil outside of one.
    package var payment: Payment?
    /// The seats of a group.
    package var seats: Seats?
    /// Whether other transactions are of the same period (Apple: "additionalTransactionReason").
    package var isOneOfSeveral: Bool
    /// `revocationType`, raw; nil before 2025, and where nothing was taken back.
    package var revocationType: String?

    /// Creates a sale from its parts; without arguments, one that states nothing.
    package init(
        plan: String? = nil, payment: Payment? = nil, seats: Seats? = nil, isOneOfSeveral: Bool = false,
        revocationType: String? = nil
    ) {
        self.plan = plan
        self.payment = payment
        self.seats = seats
        self.isOneOfSeveral = isOneOfSeveral
        self.revocationType = revocationType
    }

    /// The sale, nil where it states nothing.
    package var ifStated: Sale? { self == Sale() ? nil : self }

    /// The kinds of a revocation by which money went back to who paid; the last is ours, where items have amounts.
    private static let refunds = ["REFUND_FULL", "REFUND_PRORATED", "ADVANCED_COMMERCE"]

    /// Whether the kind of its revocation is none by which money goes back to who paid.
    var revokesUnread: Bool { revocationType.map { !Self.refunds.contains($0) } ?? false }

    /// Whether it is paid month by month.
    package var isMonthly: Bool { plan == Self.monthly }

    /// Keeps the sale with the later payment, the more refunded seats, then any total order.
    package func yields(to other: Sale) -> Bool { order.lexicographicallyPrecedes(other.order) }

    package var words: String { order.joined(separator: " ") }

    private var order: [String] {
        func number(_ value: Int64?) -> String {
            guard let value else { return "" }
            let digits = String(value)
            return String(repeating: "0", count: max(0, 20 - digits.count)) + digits
        }
        return [
            number(payment.map { Int64($0.number) }), number(seats.map { Int64($0.revoked) }),
            number(payment?.termEndsAt.milliseconds), number(payment.map { Int64($0.total) }),
            number(payment?.termPrice), orderText(plan), number(seats.map { Int64($0.count) }),
            isOneOfSeveral ? "=" : "", orderText(revocationType),
        ]
    }
}

/// What a customer wants for the time after a term of payments (Apple: "commitmentInfo" of the renewal information). Texts
/// outside of a term have none.
package struct TermWill: Hashable, Sendable, FactValue {
    /// `commitmentAutoRenewStatus`: whether the term renews.
    package var renews: Bool?
    /// `commitmentAutoRenewProductId`: the product after the term.
    package var productID: ProductID?
    /// `commitmentRenewalBillingPlanType`, raw: the plan after the term.
    package var plan: String?

    /// Creates a will from its parts; without arguments, one that says that no term runs.
    package init(renews: Bool? = nil, productID: ProductID? = nil, plan: String? = nil) {
        (self.renews, self.productID, self.plan) = (renews, productID, plan)
    }

    /// Keeps a term that renews over one that does not; then any total order.
    package func yields(to other: TermWill) -> Bool { order.lexicographicallyPrecedes(other.order) }

    package var words: String { order.joined(separator: " ") }

    private var order: [String] { [orderText(renews), orderText(productID), orderText(plan)] }
}
