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
    static let total = 12

    /// From 1 to the total.
    let number: Int
    /// The end of the term, as known with this payment. A recovery moves it.
    let termEnds: StoreTime

    var isLast: Bool { number >= Self.total }
}

/// Terms of twelve payments. Within a term `renewalIsOn` is the customer's will about the next term; payments go on.
extension Life {
    /// The payment that was made last, while its term runs. A group's term goes on without seats that were refunded.
    var runningPayment: Payment? {
        let end = periods.last?.expires
        guard phase.isLive else { return nil }
        return periods.last { $0.expires == end && $0.cancellation == nil }?.payment
    }

    /// Whether the term that runs has payments left.
    var owesPayment: Bool { runningPayment.map { !$0.isLast } ?? false }

    /// Whether Apple will try the next payment: its `autoRenewStatus`.
    var nextPaymentIsOn: Bool { owesPayment || renewalIsOn }

    var nextPaidProduct: SubscriptionProduct { owesPayment ? head.product : nextProduct }

    /// The plan of what follows the term, or the period that was paid at once.
    var followingPlan: BillingPlan { nextProduct.hasPlans ? nextPlan : .upfront }

    /// Returns the payment that a charge makes; nil where the whole period is paid at once.
    func payment(of product: SubscriptionProduct, from purchase: StoreTime) -> Payment? {
        if let paid = runningPayment, !paid.isLast {
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

/// The seats of one transaction of a group.
struct Seats: Sendable {
    static let countMax = 1000

    let count: Int
    /// Whether they were added within a period that other seats have too.
    let isAddition: Bool
    /// When other seats were added to the same period.
    var joinedAt: StoreTime?
    var revocations: [(at: StoreTime, count: Int)] = []

    var revoked: Int { revocations.reduce(0) { $0 + $1.count } }
    var left: Int { count - revoked }
    /// Whether the period has more than one transaction.
    var isOneOfSeveral: Bool { isAddition || joinedAt != nil }
}

/// A group: its purchaser pays for the seats of its members.
extension Life {
    /// The transactions of the running period that were not refunded, all of one end.
    private func rows(beside head: Period) -> [Int] {
        periods.indices.filter { periods[$0].expires == head.expires && periods[$0].cancellation == nil }
    }

    /// Whether nothing is left of the period of a transaction that was just refunded.
    func isOver(_ head: Period) -> Bool { head.seats == nil || rows(beside: head).isEmpty }

    /// Returns the running period of a group; throws for one alone.
    private func groupPeriod() throws(ActionRefused) -> Period {
        let head = try subscribedPeriod()
        guard head.seats != nil else { throw ActionRefused("that is no group") }
        guard head.purchase <= now, now < head.expires else { throw ActionRefused("the next charge is under way") }
        return head
    }

    /// Buys more seats for the rest of the period, as a second transaction of it.
    mutating func addSeats(_ wanted: Int?) throws(ActionRefused) {
        let head = try groupPeriod()
        let count = wanted ?? 1
        guard count > 0, count <= Seats.countMax - (nextSeats ?? 0) else { throw ActionRefused("too many seats") }
        for index in rows(beside: head) where periods[index].seats?.joinedAt == nil {
            periods[index].seats?.joinedAt = now
        }
        let addition = Period(
            ordinal: periods.count, kind: .seatsAdded, product: head.product, bookedAt: now,
            purchase: max(now.wholeSecond, head.purchase), redeemed: nil, priceIncreases: head.priceIncreases,
            buyer: buyer, payment: head.payment, seats: Seats(count: count, isAddition: true),
            expiries: [(knownAt: now, expires: head.expires)])
        periods.append(addition)
        nextSeats = (nextSeats ?? 0) + count
        record(.seatsAdded, period: addition.ordinal)
    }

    /// Renews with fewer seats.
    mutating func reduceSeats(_ wanted: Int?) throws(ActionRefused) {
        let head = try groupPeriod()
        let count = wanted ?? 1
        guard count > 0, let next = nextSeats, next > count else { throw ActionRefused("a group has a seat") }
        nextSeats = next - count
        record(.seatsReduced, period: head.ordinal)
    }

    /// Refunds some seats of a transaction, the newest unless one is named; with the last one the whole transaction.
    mutating func refundSeats(_ action: CustomerAction) throws(ActionRefused) {
        let head = try groupPeriod()
        let index = action.transactionID.map { periodNumber(of: $0) } ?? rows(beside: head).last
        guard let index, let seats = periods[index].seats, periods[index].cancellation == nil else {
            throw ActionRefused("there are no such seats")
        }
        let count = action.seats ?? 1
        guard count > 0, count <= seats.left else { throw ActionRefused("there are not so many seats") }
        nextSeats = max(1, (nextSeats ?? 1) - count)
        guard count < seats.left else {
            var refund = CustomerAction(.refund)
            refund.transactionID = ids.transactionID(of: index)
            return try apply(refund)
        }
        periods[index].seats?.revocations.append((at: now, count: count))
        record(.seatsRefunded, period: index)
    }
}
