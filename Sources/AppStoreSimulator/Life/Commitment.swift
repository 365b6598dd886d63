/// How a yearly subscription is paid.
package enum BillingPlan: String, Codable, Sendable, CaseIterable {
    /// The whole period at once.
    case upfront
    /// Twelve payments, one a month, to which the customer is committed.
    case monthly

    /// Apple's `billingPlanType`.
    var claim: String {
        switch self {
        case .upfront: "BILLED_UPFRONT"
        case .monthly: "MONTHLY"
        }
    }
}

/// One payment of a term of twelve months.
struct Payment: Sendable, Equatable {
    /// The payments of a term.
    static let total = 12

    /// From 1 to the total.
    let number: Int
    /// The end of the term, as known with this payment. A recovery moves it.
    let termEnds: StoreTime

    var isLast: Bool { number >= Self.total }
}

/// Terms of twelve payments. Within a term `renewalIsOn` is the customer's will about the next term; payments go on.
extension Life {
    /// The payment that was made last, while its term runs.
    var runningPayment: Payment? {
        guard let head = periods.last, head.cancellation == nil else { return nil }
        switch phase {
        case .subscribed, .retrying: return head.payment
        case .ended: return nil
        }
    }

    /// Whether the term that runs has payments left.
    var owesPayment: Bool { runningPayment.map { !$0.isLast } ?? false }

    /// Whether Apple will try the next payment: its `autoRenewStatus`.
    var nextPaymentIsOn: Bool { owesPayment || renewalIsOn }

    /// The product of the next payment.
    var nextPaidProduct: SubscriptionProduct { owesPayment ? periods.last?.product ?? nextProduct : nextProduct }

    /// The plan of what follows the term, or the period that was paid at once.
    var followingPlan: BillingPlan { nextProduct.hasPlans ? nextPlan : .upfront }

    /// Returns the payment that a charge makes; nil where the whole period is paid at once.
    func payment(of product: SubscriptionProduct, from purchase: StoreTime) -> Payment? {
        if owesPayment, let paid = runningPayment, let head = periods.last {
            let gap = purchase.milliseconds - head.expires.milliseconds
            return Payment(number: paid.number + 1, termEnds: paid.termEnds + gap)
        }
        guard nextPlan == .monthly, product.hasPlans else { return nil }
        return Payment(number: 1, termEnds: purchase + scale.length(of: product))
    }

    /// Chooses the other plan for what follows.
    mutating func switchPlan() throws(ActionRefused) {
        let head = try subscribedPeriod()
        guard renewalIsOn else { throw ActionRefused("renewal is off") }
        guard nextProduct.hasPlans else { throw ActionRefused("only yearly products have plans") }
        nextPlan = nextPlan == .monthly ? .upfront : .monthly
        let own: BillingPlan = head.payment == nil ? .upfront : .monthly
        let isBack = nextPlan == own && nextProduct == head.product
        record(isBack ? .changeWithdrawn : .planSwitchScheduled, period: head.ordinal)
    }
}

extension SubscriptionProduct {
    /// Whether it can be paid month by month.
    var hasPlans: Bool { months == 12 }
}
