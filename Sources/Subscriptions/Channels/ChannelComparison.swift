/// What verifyReceipt and the Server API state about one receipt at nearly the same time, fact by fact.
///
/// Facts that only one channel has (a price, a percentage) are not compared, nor is a detail that one of them leaves
/// unsaid. What exists is compared: both speak for everything they know.
package struct ChannelComparison: Sendable, Hashable {
    /// The subscriptions and one-time purchases that were compared, sorted.
    package let compared: [OriginalTransactionID]
    /// What differs, in the order of `compared`.
    package let differences: [ChannelDifference]

    package init(compared: [OriginalTransactionID], differences: [ChannelDifference]) {
        (self.compared, self.differences) = (compared, differences)
    }

    /// Compares two whole answers about the same receipt.
    ///
    /// - Parameters:
    ///   - receipt: What verifyReceipt states.
    ///   - server: What the Server API states: the statuses with the complete history.
    ///   - consumables: The transactions that the Server API calls consumables.
    package init(_ receipt: Evidence, _ server: Evidence, consumables: Set<TransactionID> = []) {
        // Such an answer has the device's row and the newest one.
        let isOld = receipt.receiptCreatedAt == nil && receipt.transactions.count <= 2
        let subscriptions = Set(receipt.subscriptions).union(server.subscriptions).sorted()
        var differences = subscriptions.flatMap { id in
            SubscriptionComparison(
                SubscriptionFacts(receipt.slice(of: id)), SubscriptionFacts(server.slice(of: id)), isOld: isOld
            ).differences
        }
        let (ours, theirs) = (receipt.purchaseFacts, server.purchaseFacts)
        let purchases = Set(ours.keys).union(theirs.keys).sorted()
        for key in purchases {
            differences +=
                PurchaseComparison(
                    ours[key], theirs[key], key: key, consumables: consumables, isOld: isOld
                ).differences
        }
        compared = Set(subscriptions + purchases.map(\.originalTransactionID)).sorted()
        self.differences = differences.sorted { $0.originalTransactionID < $1.originalTransactionID }
    }
}

/// Collects what differs about one period, purchase or renewal.
struct DifferenceList {
    let originalTransactionID: OriginalTransactionID
    private(set) var differences: [ChannelDifference] = []

    init(of id: OriginalTransactionID) { originalTransactionID = id }

    /// Adds a fact, if both texts are not equal.
    mutating func add(
        _ fact: ChannelDifference.Fact, of transaction: TransactionID?, _ receipt: String?, _ server: String?,
        explanation: ChannelDifference.Explanation? = nil
    ) {
        guard receipt != server else { return }
        differences.append(
            ChannelDifference(
                originalTransactionID: originalTransactionID, transactionID: transaction, fact: fact,
                verifyReceipt: receipt, serverAPI: server, explanation: explanation))
    }

    /// Adds a fact that a channel may leave unsaid, if both state it and differ.
    mutating func addSaid(
        _ fact: ChannelDifference.Fact, of transaction: TransactionID?, _ receipt: String?, _ server: String?
    ) {
        guard receipt != nil, server != nil else { return }
        add(fact, of: transaction, receipt, server)
    }
}

extension Evidence {
    /// The one-time purchases of the answer.
    fileprivate var purchaseFacts: [PurchaseKey: PurchaseFacts] {
        purchases.reduce(into: [:]) { $0[$1.key] = reconcilePurchase(nil, with: $1)?.state.facts }
    }
}

/// A fact about one receipt that verifyReceipt and the Server API state differently.
package struct ChannelDifference: Sendable, Hashable {
    /// A fact that both channels state; the names are stored.
    package enum Fact: String, Sendable, CaseIterable {
        /// Whether a billing period exists.
        case period
        /// Whether a one-time purchase exists.
        case purchase
        case productID = "product_id"
        case purchasedAt = "purchased_at"
        case expiresAt = "expires_at"
        case quantity
        case cancelledAt = "cancelled_at"
        case isUpgraded = "is_upgraded"
        case isTrial = "is_trial"
        case isIntro = "is_intro"
        case promotionalOfferID = "promotional_offer_id"
        case offerCodeRefName = "offer_code_ref_name"
        case groupID = "group_id"
        case ownership
        case appAccountToken = "app_account_token"
        case willRenew = "will_renew"
        case renewsToProductID = "renews_to_product_id"
        case expirationIntent = "expiration_intent"
        case inBillingRetry = "in_billing_retry"
        case graceExpiresAt = "grace_expires_at"
        case priceIncreaseStatus = "price_increase_status"
    }

    /// Why a difference is to be expected; the names are stored.
    package enum Explanation: String, Sendable, CaseIterable {
        /// A receipt loses a consumable once the app has finished it; the Server API keeps it.
        case finishedConsumable = "finished_consumable"
        /// A device that restored a purchase may show the moment of the restore as its date.
        case restored
        /// A receipt of the form of iOS 6 is about its newest period only.
        case oldReceipt = "old_receipt"
    }

    /// The subscription, or the one-time purchase by its original transaction.
    package let originalTransactionID: OriginalTransactionID
    /// The transaction of the period or purchase; nil for the renewal.
    package let transactionID: TransactionID?
    package let fact: Fact
    /// What verifyReceipt states; nil where it states nothing.
    package let verifyReceipt: String?
    /// What the Server API states; nil where it states nothing.
    package let serverAPI: String?
    /// Why the difference is to be expected; nil where it is not.
    package var explanation: Explanation?
}

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

/// Compares what both channels state about one one-time purchase.
struct PurchaseComparison {
    private var list: DifferenceList

    init(
        _ receipt: PurchaseFacts?, _ server: PurchaseFacts?, key: PurchaseKey, consumables: Set<TransactionID>,
        isOld: Bool
    ) {
        list = DifferenceList(of: key.originalTransactionID)
        guard let receipt, let server else {
            let transactions = receipt?.transactionIDs ?? server?.transactionIDs ?? []
            let isConsumable = !transactions.isDisjoint(with: consumables)
            let explanation: ChannelDifference.Explanation? =
                receipt != nil ? nil : isConsumable ? .finishedConsumable : isOld ? .oldReceipt : nil
            list.add(
                .purchase, of: transactions.min(), receipt?.summary, server?.summary, explanation: explanation)
            return
        }
        compare(receipt, server, of: receipt.transactionIDs.union(server.transactionIDs).min())
    }

    /// What differs.
    var differences: [ChannelDifference] { list.differences }

    private mutating func compare(_ left: PurchaseFacts, _ right: PurchaseFacts, of transaction: TransactionID?) {
        let (leftTerms, rightTerms) = (left.terms.value, right.terms.value)
        list.add(
            .purchasedAt, of: transaction, leftTerms.purchasedAt.iso8601, rightTerms.purchasedAt.iso8601,
            explanation: leftTerms.purchasedAt > rightTerms.purchasedAt ? .restored : nil)
        list.add(.quantity, of: transaction, "\(leftTerms.quantity)", "\(rightTerms.quantity)")
        // A device's receipt does not speak of a refund that came after it.
        if left.revocation.origin != .unspoken {
            list.add(
                .cancelledAt, of: transaction, left.revocation.value.cancelledAt?.iso8601,
                right.revocation.value.cancelledAt?.iso8601)
        }
        list.addSaid(.ownership, of: transaction, left.ownership?.value.raw, right.ownership?.value.raw)
        list.addSaid(
            .appAccountToken, of: transaction, left.appAccountToken?.value.lowercased(),
            right.appAccountToken?.value.lowercased())
    }
}

extension PurchaseFacts {
    /// The purchase in a few words.
    fileprivate var summary: String { "\(key.productID.text) \(terms.value.purchasedAt.iso8601)" }
}
