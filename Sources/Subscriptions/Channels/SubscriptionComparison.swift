/// Compares what both channels state about one subscription.
struct SubscriptionComparison {
    private let receipt: SubscriptionFacts
    private let server: SubscriptionFacts
    /// Whether the receipt is of the form that is about its newest period only.
    private let isOld: Bool
    private var list: DifferenceList

    init(_ receipt: SubscriptionFacts, _ server: SubscriptionFacts, isOld: Bool) {
        (self.receipt, self.server, self.isOld) = (receipt, server, isOld)
        list = DifferenceList(of: receipt.originalTransactionID)
        comparePeriods()
        compareRenewals()
    }

    /// What differs: periods by their start, then the renewal.
    var differences: [ChannelDifference] { list.differences }

    /// Compares the periods of both, each with the other channel's account of the same period.
    private mutating func comparePeriods() {
        let (ours, theirs) = (PeriodMatch(receipt.periods), PeriodMatch(server.periods))
        for period in PeriodGrouping.grouped(receipt.periods + server.periods) {
            let left = ours.index(of: period).map { receipt.periods[$0] }
            let right = theirs.index(of: period).map { server.periods[$0] }
            let transaction = period.transactionIDs.min()
            guard let left, let right else {
                let explanation: ChannelDifference.Explanation? = isOld && left == nil ? .oldReceipt : nil
                list.add(.period, of: transaction, left?.summary, right?.summary, explanation: explanation)
                continue
            }
            compare(left, right, of: transaction)
        }
    }

    private mutating func compare(_ left: Period, _ right: Period, of transaction: TransactionID?) {
        list.add(.productID, of: transaction, left.productID.text, right.productID.text)
        list.add(.purchasedAt, of: transaction, left.purchasedAt.iso8601, right.purchasedAt.iso8601)
        list.add(.expiresAt, of: transaction, left.expiresAt.iso8601, right.expiresAt.iso8601)
        // verifyReceipt does not know the seats of a group.
        if right.details.sale?.value.seats == nil {
            list.add(.quantity, of: transaction, "\(left.terms.value.quantity)", "\(right.terms.value.quantity)")
        }
        list.add(.isUpgraded, of: transaction, "\(left.isUpgraded)", "\(right.isUpgraded)")
        // A signed transaction that was upgraded leaves the date unsaid.
        if !left.isUpgraded, !right.isUpgraded {
            list.add(.cancelledAt, of: transaction, left.cancelledAt?.iso8601, right.cancelledAt?.iso8601)
        }
        compare(left.details, right.details, of: transaction)
    }

    private mutating func compare(_ left: PeriodDetails, _ right: PeriodDetails, of transaction: TransactionID?) {
        func text<Value>(_ fact: Fact<Value>?) -> String? { fact.map { "\($0.value)" } }
        list.addSaid(.isTrial, of: transaction, text(left.isTrial), text(right.isTrial))
        list.addSaid(.isIntro, of: transaction, text(left.isIntro), text(right.isIntro))
        list.addSaid(
            .promotionalOfferID, of: transaction, text(left.promotionalOfferID), text(right.promotionalOfferID))
        list.addSaid(.offerCodeRefName, of: transaction, text(left.offerCodeRefName), text(right.offerCodeRefName))
        list.addSaid(.groupID, of: transaction, left.groupID?.value.text, right.groupID?.value.text)
        list.addSaid(.ownership, of: transaction, left.ownership?.value.raw, right.ownership?.value.raw)
        list.addSaid(
            .appAccountToken, of: transaction, left.appAccountToken?.value.lowercased(),
            right.appAccountToken?.value.lowercased())
    }

    /// Compares the renewals, where both channels state one.
    private mutating func compareRenewals() {
        guard let left = receipt.renewal?.value, let right = server.renewal?.value else { return }
        func text(_ flag: Bool?) -> String? { flag.map { "\($0)" } }
        list.addSaid(.willRenew, of: nil, text(left.willRenew), text(right.willRenew))
        list.addSaid(.renewsToProductID, of: nil, left.renewsToProductID?.text, right.renewsToProductID?.text)
        list.add(.expirationIntent, of: nil, left.expirationIntent, right.expirationIntent)
        list.add(.inBillingRetry, of: nil, "\(left.inBillingRetry ?? false)", "\(right.inBillingRetry ?? false)")
        list.add(.priceIncreaseStatus, of: nil, left.priceIncreaseStatus, right.priceIncreaseStatus)
        // The date stays in Apple's data after grace is over.
        let now = min(receipt.asOf, server.asOf)
        func grace(_ renewal: Renewal) -> String? {
            renewal.graceExpiresAt.flatMap { $0 > now ? $0.iso8601 : nil }
        }
        list.add(.graceExpiresAt, of: nil, grace(left), grace(right))
    }
}

extension Period {
    /// The period in a few words.
    fileprivate var summary: String { "\(productID.text) \(purchasedAt.iso8601) to \(expiresAt.iso8601)" }
}
