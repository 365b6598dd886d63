/// What verifyReceipt and the Server API state about one receipt at nearly the same time, fact by fact. Facts that only
/// one channel has (a price, a percentage) are not compared, nor is a detail that one of them leaves unsaid.
package struct ChannelComparison: Sendable, Hashable {
    /// The subscriptions and one-time purchases that were compared, sorted.
    package let compared: [OriginalTransactionID]
    /// What differs, in the order of `compared`.
    package let differences: [ChannelDifference]
}

extension ChannelComparison {
    /// Compares verifyReceipt's whole answer about a receipt with what the Server API states: the statuses with the complete
    /// history. `consumables` are the transactions that the Server API calls so.
    package init(_ receipt: Evidence, _ server: Evidence, consumables: Set<TransactionID> = []) {
        // Such an answer has the device's row and the newest one.
        let isOld = receipt.receiptCreatedAt == nil && receipt.transactions.count <= 2
        let subscriptions = Set(receipt.subscriptions).union(server.subscriptions).sorted()
        var differences: [ChannelDifference] = []
        for id in subscriptions {
            var list = DifferenceList(originalTransactionID: id, isOld: isOld)
            list.compare(SubscriptionFacts(receipt.slice(of: id)), SubscriptionFacts(server.slice(of: id)))
            differences += list.differences
        }
        let (ours, theirs) = (receipt.purchaseFacts, server.purchaseFacts)
        let purchases = Set(ours.keys).union(theirs.keys).sorted()
        for key in purchases {
            var list = DifferenceList(originalTransactionID: key.originalTransactionID, isOld: isOld)
            list.compare(ours[key], theirs[key], consumables: consumables)
            differences += list.differences
        }
        self.init(
            compared: Set(subscriptions + purchases.map(\.originalTransactionID)).sorted(),
            differences: differences.sorted { $0.originalTransactionID < $1.originalTransactionID })
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
    /// A fact that both channels state; the names are stored. What exists is compared, because both speak for everything
    /// they know. A detail is compared where its name in ``PeriodRecord/FactName`` or ``PurchaseFacts/Name`` is one of
    /// these.
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

/// Collects what both channels state differently about one subscription or purchase, verifyReceipt's word first.
private struct DifferenceList {
    let originalTransactionID: OriginalTransactionID
    /// Whether the receipt is of the form that is about its newest period only.
    let isOld: Bool
    /// The transaction of the period or purchase that is compared; nil for the renewal.
    var transactionID: TransactionID?
    var differences: [ChannelDifference] = []

    /// Adds a fact, if its texts are not equal.
    mutating func add(
        _ fact: ChannelDifference.Fact, _ receipt: String?, _ server: String?,
        explanation: ChannelDifference.Explanation? = nil
    ) {
        guard receipt != server else { return }
        differences.append(
            ChannelDifference(
                originalTransactionID: originalTransactionID, transactionID: transactionID, fact: fact,
                verifyReceipt: receipt, serverAPI: server, explanation: explanation))
    }

    /// Adds a fact, if its texts are not equal.
    mutating func add<Stated>(
        _ fact: ChannelDifference.Fact, _ receipt: Stated, _ server: Stated, _ text: (Stated) -> String?
    ) {
        add(fact, text(receipt), text(server))
    }

    /// Adds a fact that a channel may leave unsaid, if both state it and differ.
    mutating func addSaid<Value>(
        _ fact: ChannelDifference.Fact, _ receipt: Value?, _ server: Value?, _ text: (Value) -> String = { "\($0)" }
    ) {
        guard let receipt, let server else { return }
        add(fact, text(receipt), text(server))
    }

    /// Compares the periods by their start, each with the other's account of it, then the renewals that both state.
    mutating func compare(_ receipt: SubscriptionFacts, _ server: SubscriptionFacts) {
        let (ours, theirs) = (PeriodMatch(receipt.periods), PeriodMatch(server.periods))
        for period in PeriodGrouping.grouped(receipt.periods + server.periods) {
            let left = ours.index(of: period).map { receipt.periods[$0] }
            let right = theirs.index(of: period).map { server.periods[$0] }
            transactionID = period.transactionIDs.min()
            if let left, let right {
                compare(left, right)
                compareDetails(left.details, right.details)
            } else {
                add(.period, left?.summary, right?.summary, explanation: isOld && left == nil ? .oldReceipt : nil)
            }
        }
        transactionID = nil
        guard let left = receipt.renewal?.value, let right = server.renewal?.value else { return }
        compare(left, right, at: min(receipt.asOf, server.asOf))
    }

    private mutating func compare(_ left: Period, _ right: Period) {
        add(.productID, left, right) { $0.productID.text }
        add(.purchasedAt, left, right) { $0.purchasedAt.iso8601 }
        add(.expiresAt, left, right) { $0.expiresAt.iso8601 }
        // verifyReceipt does not know the seats of a group.
        if right.details.sale?.value.seats == nil { add(.quantity, left, right) { "\($0.terms.value.quantity)" } }
        add(.isUpgraded, left, right) { "\($0.isUpgraded)" }
        // A signed transaction that was upgraded leaves the date unsaid.
        if !left.isUpgraded, !right.isUpgraded { add(.cancelledAt, left, right) { $0.cancelledAt?.iso8601 } }
    }

    /// Compares the details that both state.
    private mutating func compareDetails<Facts: FactGroup>(_ left: Facts, _ right: Facts)
    where Facts.Name: RawRepresentable<String> {
        var step = DetailComparison<Facts.Name>(list: self)
        left.each(beside: right, &step)
        self = step.list
    }

    private mutating func compare(_ left: Renewal, _ right: Renewal, at now: Instant) {
        addSaid(.willRenew, left.willRenew, right.willRenew)
        addSaid(.renewsToProductID, left.renewsToProductID, right.renewsToProductID)
        add(.expirationIntent, left.expirationIntent, right.expirationIntent)
        add(.inBillingRetry, left, right) { "\($0.inBillingRetry ?? false)" }
        add(.priceIncreaseStatus, left.priceIncreaseStatus, right.priceIncreaseStatus)
        // The date stays in Apple's data after grace is over.
        add(.graceExpiresAt, left, right) { $0.graceExpiresAt.flatMap { $0 > now ? $0.iso8601 : nil } }
    }

    /// Compares what both channels state of a one-time purchase.
    mutating func compare(_ receipt: PurchaseFacts?, _ server: PurchaseFacts?, consumables: Set<TransactionID>) {
        guard let left = receipt, let right = server else {
            let transactions = receipt?.transactionIDs ?? server?.transactionIDs ?? []
            let isConsumable = !transactions.isDisjoint(with: consumables)
            let explanation: ChannelDifference.Explanation? =
                receipt != nil ? nil : isConsumable ? .finishedConsumable : isOld ? .oldReceipt : nil
            transactionID = transactions.min()
            add(.purchase, receipt?.summary, server?.summary, explanation: explanation)
            return
        }
        transactionID = left.transactionIDs.union(right.transactionIDs).min()
        let (ours, theirs) = (left.terms.value, right.terms.value)
        add(
            .purchasedAt, ours.purchasedAt.iso8601, theirs.purchasedAt.iso8601,
            explanation: ours.purchasedAt > theirs.purchasedAt ? .restored : nil)
        add(.quantity, ours, theirs) { "\($0.quantity)" }
        // A device's receipt does not speak of a refund that came after it.
        if left.revocation.origin != .unspoken {
            add(.cancelledAt, left, right) { $0.revocation.value.cancelledAt?.iso8601 }
        }
        compareDetails(left, right)
    }
}

/// Compares one detail after another, by the names that differences have.
private struct DetailComparison<Name: Hashable & RawRepresentable<String>>: FactStep {
    var list: DifferenceList

    mutating func fact<Value>(_ name: Name, _ left: Fact<Value>?, _ right: Fact<Value>?) -> Fact<Value>? {
        if let fact = ChannelDifference.Fact(rawValue: name.rawValue) {
            list.addSaid(fact, left?.value, right?.value) {
                fact == .appAccountToken ? $0.words.lowercased() : $0.words
            }
        }
        return nil
    }
}

extension Period {
    /// The period in a few words.
    fileprivate var summary: String { "\(productID.text) \(purchasedAt.iso8601) to \(expiresAt.iso8601)" }
}

extension PurchaseFacts {
    /// The purchase in a few words.
    fileprivate var summary: String { "\(key.productID.text) \(terms.value.purchasedAt.iso8601)" }
}
