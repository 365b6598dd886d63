/// Merges one more answer into a one-time purchase. A pure function, without a clock. Evidence without rows confirms
/// what is stored; nil if nothing is. A refund that is gone counts as in a subscription, see ``RetractionGuard``, and
/// only on the word of a channel that can see it.
package func reconcilePurchase(
    _ stored: PurchaseState?, with evidence: PurchaseEvidence, policy: Policy = .standard(for: .production)
) -> ReconciledPurchase? {
    let rows = evidence.transactions.map {
        PurchaseFacts($0.yieldingToAnswer(at: evidence.asOf), key: evidence.key, asOf: evidence.asOf)
    }
    let said = rows.dropFirst().reduce(rows.first) { $0?.merging($1) }
    guard var facts = said.map({ stored?.facts.merging($0) ?? $0 }) ?? stored?.facts else { return nil }
    facts.asOf = max(facts.asOf, evidence.asOf)
    let retractedAt = stored.flatMap { facts.keepRefund(of: $0, said, policy: policy) }
    let events = purchaseEvents(stored?.facts, facts)
    let changed = !events.isEmpty || !(stored?.facts.sameMeaning(as: facts) ?? false)
    let version = (stored?.version ?? 0) + (changed ? 1 : 0)
    let state = PurchaseState(facts: facts, version: version, refundRetractedAt: retractedAt)
    return ReconciledPurchase(state: state, events: events, changed: changed)
}

/// Returns both a purchase and a refund for one refunded when first seen, so that sums over events stay correct.
private func purchaseEvents(_ old: PurchaseFacts?, _ new: PurchaseFacts) -> [Event] {
    let terms = new.terms.value
    var detail: [String: DetailValue] = [
        "transaction_id": .text(terms.transactionID.text), "quantity": .integer(Int64(terms.quantity)),
    ]
    func event(_ kind: EventKind, at instant: Instant) -> Event {
        Event(kind: kind, productID: new.key.productID, occurredAt: min(instant, new.asOf), detail: detail)
    }
    var events: [Event] = []
    if old == nil { events.append(event(.purchaseMade, at: terms.purchasedAt)) }
    let (was, isNow) = (old?.revocation.value.cancelledAt, new.revocation.value.cancelledAt)
    if let reason = new.revocation.value.reason ?? old?.revocation.value.reason { detail["reason"] = .text(reason) }
    if let isNow, was == nil {
        events.append(event(new.isShared ? .familyRevoked : .purchaseRefunded, at: isNow))
    }
    if let old, was != nil, isNow == nil {
        detail["not_before"] = .text(old.asOf.iso8601)
        events.append(event(.refundReversed, at: new.asOf))
    }
    return events
}

/// The facts that every row states about a one-time purchase, taken from one row as a whole.
package struct PurchaseTerms: Hashable, Sendable, FactValue {
    /// `purchase_date`, or `original_purchase_date` where that is earlier.
    package var purchasedAt: Instant
    package var quantity: Int
    /// `transaction_id` of the source; others are aliases.
    package var transactionID: TransactionID
    /// Whether the date is the row's `original_purchase_date`.
    package var isOriginal: Bool

    /// Terms from their parts.
    package init(purchasedAt: Instant, quantity: Int, transactionID: TransactionID, isOriginal: Bool = false) {
        self.purchasedAt = purchasedAt
        self.quantity = quantity
        self.transactionID = transactionID
        self.isOriginal = isOriginal
    }

    /// The terms that a row states. Some sources write zero for no date.
    fileprivate init(row: TransactionRow) {
        let original = row.originalPurchasedAt.flatMap { $0.milliseconds > 0 && $0 < row.purchasedAt ? $0 : nil }
        self.init(
            purchasedAt: original ?? row.purchasedAt, quantity: row.quantity, transactionID: row.transactionID,
            isOriginal: original != nil)
    }

    /// Keeps the earlier purchase, then the date that a row gives as its own.
    package func yields(to other: PurchaseTerms) -> Bool {
        if purchasedAt != other.purchasedAt { return purchasedAt > other.purchasedAt }
        if isOriginal != other.isOriginal { return isOriginal }
        return (quantity, transactionID) < (other.quantity, other.transactionID)
    }
}

extension Fact<Revocation> {
    /// Returns which of two statements about a one-time purchase counts: the newer one. But a receipt may hold what was bought
    /// as its device had it, so what verifyReceipt shows without a refund says nothing against the Server API.
    fileprivate func outranking(_ other: Fact) -> Fact {
        if origin.isOfServerAPI, !other.origin.isOfServerAPI, other.value.cancelledAt == nil { return self }
        if other.origin.isOfServerAPI, !origin.isOfServerAPI, value.cancelledAt == nil { return other }
        return merging(other)
    }
}

extension PurchaseFacts {
    /// Keeps a refund, known or stated late, that only one answer takes back. Returns the instant of that answer.
    fileprivate mutating func keepRefund(of stored: PurchaseState, _ said: PurchaseFacts?, policy: Policy) -> Instant? {
        let (known, earlier) = (stored.facts.revocation, stored.refundRetractedAt)
        if revocation.value.cancelledAt != nil {
            // What verifyReceipt may have taken back says nothing against the Server API.
            let isSameWord = known.origin.isOfServerAPI || !revocation.origin.isOfServerAPI
            return earlier.flatMap { isSameWord && revocation.asOf < $0 ? $0 : nil }
        }
        if known.value.cancelledAt == nil {
            guard let said, said.revocation.value.cancelledAt != nil,
                RetractionGuard.stands(said.revocation.asOf, against: known.asOf, policy: policy)
            else { return nil }
            takeRefund(of: said)
            return known.asOf
        }
        let newest = max(revocation.asOf, earlier ?? revocation.asOf)
        if RetractionGuard.counts(revocation.asOf, with: earlier, statedAt: known.asOf, policy: policy) {
            revocation.origin.asOf = newest
            return nil
        }
        takeRefund(of: stored.facts)
        return newest
    }

    private mutating func takeRefund(of other: PurchaseFacts) {
        revocation = other.revocation
        (revocationPercentage, refundShown) = (other.revocationPercentage, other.refundShown)
    }

    /// A share of the price, if its refund is that of the date.
    fileprivate func share(_ share: Fact<Int>?, of revocation: Fact<Revocation>) -> Fact<Int>? {
        revocation.isDated(self.revocation.value.cancelledAt) ? share : nil
    }
}

extension PurchaseState {
    /// Returns whether an answer takes a refund back that waits for a second answer, or states one that a newer one took back.
    package func doubts(in evidence: PurchaseEvidence) -> Bool {
        refundRetractedAt != nil
            && evidence.transactions.contains { row in
                let said = Fact(revocationOf: row.yieldingToAnswer(at: evidence.asOf))
                return said.value.cancelledAt == nil
                    ? facts.revocation.outranking(said) == said : said.asOf == facts.revocation.asOf
            }
    }
}

extension Fact<PurchaseTerms> {
    /// Returns the terms that do not yield, whichever answer is newer. A restored row may carry the instant of the
    /// restore, so a later date never replaces an earlier one.
    fileprivate func earliest(_ other: Fact) -> Fact {
        guard value == other.value else { return value.yields(to: other.value) ? other : self }
        return merging(other)
    }
}

/// Everything Apple has stated about one one-time purchase, merged like the facts of a subscription.
package struct PurchaseFacts: Sendable, Hashable {
    package var key: PurchaseKey
    /// Apple's clock at the newest verified answer; never goes back.
    package var asOf: Instant
    /// Every delivery of the purchase seen so far.
    package var transactionIDs: Set<TransactionID>
    /// Purchase date, quantity and transaction.
    package var terms: Fact<PurchaseTerms>
    /// Whether it was taken back; `FactOrigin.unspoken` if only device receipts without a cancellation mentioned it.
    package var revocation: Fact<Revocation>
    /// `in_app_ownership_type`.
    package var ownership: Fact<Ownership>?
    package var appAccountToken: Fact<String>?
    /// `price` and `currency` of a signed transaction.
    package var price: Fact<Price>?
    /// `revocationPercentage` of a signed transaction, in thousandths of a percent.
    package var revocationPercentage: Fact<Int>?
    /// The same as answers show it: what a notification states does not count.
    package var refundShown: Fact<Int>?

    /// Whether another customer paid: it gives access and costs nothing.
    package var isShared: Bool { ownership.map { !$0.value.isPayer } ?? false }

    /// Creates facts from stored parts.
    package init(
        key: PurchaseKey, asOf: Instant, transactionIDs: Set<TransactionID>, terms: Fact<PurchaseTerms>,
        revocation: Fact<Revocation>, ownership: Fact<Ownership>? = nil, appAccountToken: Fact<String>? = nil,
        price: Fact<Price>? = nil, revocationPercentage: Fact<Int>? = nil, refundShown: Fact<Int>? = nil
    ) {
        self.key = key
        self.asOf = asOf
        self.transactionIDs = transactionIDs
        self.terms = terms
        self.revocation = revocation
        self.ownership = ownership
        self.appAccountToken = appAccountToken
        self.price = price
        self.revocationPercentage = revocationPercentage
        self.refundShown = refundShown
    }

    /// Creates the facts that one row states, in an answer of `asOf`.
    init(_ row: TransactionRow, key: PurchaseKey, asOf: Instant) {
        let origin = FactOrigin(asOf: row.asOf, path: row.path)
        func said<Value>(_ value: Value?) -> Fact<Value>? { value.map { Fact($0, origin: origin) } }
        let share = said(row.revocationPercentage)
        self.init(
            key: key, asOf: asOf, transactionIDs: [row.transactionID],
            terms: Fact(PurchaseTerms(row: row), origin: origin), revocation: Fact(revocationOf: row),
            ownership: said(row.ownership), appAccountToken: said(row.appAccountToken), price: said(row.price),
            revocationPercentage: share, refundShown: origin.isOfNotification ? nil : share)
    }

    /// Returns the facts of both, each from its newest source, the terms by their earliest date, and whether it was taken back by
    /// the channel that can see it, with the share of that refund; `asOf` is the later one.
    package func merging(_ other: PurchaseFacts) -> PurchaseFacts {
        var merged = updated(by: other)
        merged.asOf = max(asOf, other.asOf)
        merged.transactionIDs = transactionIDs.union(other.transactionIDs)
        merged.terms = terms.earliest(other.terms)
        let revocation = revocation.outranking(other.revocation)
        merged.revocation = revocation
        merged.revocationPercentage = newest(
            share(revocationPercentage, of: revocation), other.share(other.revocationPercentage, of: revocation))
        merged.refundShown = newest(share(refundShown, of: revocation), other.share(other.refundShown, of: revocation))
        return merged
    }

    /// Returns whether both state the same, regardless of source and instant.
    package func sameMeaning(as other: PurchaseFacts) -> Bool {
        transactionIDs == other.transactionIDs && terms.value == other.terms.value
            && revocation.value == other.revocation.value && statesSame(as: other)
    }
}

extension PurchaseFacts: FactGroup {
    /// The facts that a row may leave out.
    package enum Name: String, Hashable {
        case ownership
        case appAccountToken = "app_account_token"
        case price
        case revocationPercentage = "revocation_percentage"
        case refundShown = "refund_shown"
    }

    @discardableResult
    package func each(beside other: PurchaseFacts, _ step: inout some FactStep<Name>) -> PurchaseFacts {
        var made = self
        made.ownership = step.fact(.ownership, ownership, other.ownership)
        made.appAccountToken = step.fact(.appAccountToken, appAccountToken, other.appAccountToken)
        made.price = step.fact(.price, price, other.price)
        made.revocationPercentage = step.fact(.revocationPercentage, revocationPercentage, other.revocationPercentage)
        made.refundShown = step.fact(.refundShown, refundShown, other.refundShown)
        return made
    }
}

/// The ledger's state of one one-time purchase.
package struct PurchaseState: Sendable, Hashable {
    /// The facts Apple has stated.
    package let facts: PurchaseFacts
    /// The number of changes, from 1.
    package let version: Int64
    /// The instant of the newest answer that took its refund back, which waits for a second one; nil for none.
    package let refundRetractedAt: Instant?

    package init(facts: PurchaseFacts, version: Int64, refundRetractedAt: Instant? = nil) {
        self.facts = facts
        self.version = version
        self.refundRetractedAt = refundRetractedAt
    }

    /// The delivery to show: that of the row with the earliest date.
    package var transactionID: TransactionID { facts.terms.value.transactionID }
    /// The instant of the purchase: the earliest that Apple ever gave.
    package var purchasedAt: Instant { facts.terms.value.purchasedAt }
    /// The quantity bought.
    package var quantity: Int { facts.terms.value.quantity }
    /// The instant at which Apple took it back; nil while it is valid.
    package var revokedAt: Instant? { facts.revocation.value.cancelledAt }
    /// Apple's clock at the newest verified answer.
    package var asOf: Instant { facts.asOf }
}

/// The key of a one-time purchase within one environment of one app. Transaction ids are its aliases.
package struct PurchaseKey: Sendable, Hashable, Comparable {
    package let originalTransactionID: OriginalTransactionID
    package let productID: ProductID

    package init(originalTransactionID: OriginalTransactionID, productID: ProductID) {
        self.originalTransactionID = originalTransactionID
        self.productID = productID
    }

    /// Orders keys by original transaction, then product.
    package static func < (left: PurchaseKey, right: PurchaseKey) -> Bool {
        (left.originalTransactionID, left.productID) < (right.originalTransactionID, right.productID)
    }
}

/// The part of one answer about one one-time purchase: rows without an expiry.
package struct PurchaseEvidence: Sendable, Hashable {
    package var key: PurchaseKey
    /// Apple's clock at the answer.
    package var asOf: Instant
    /// Its rows, from both lists.
    package var transactions: [TransactionRow]

    /// Creates evidence from its parts.
    package init(key: PurchaseKey, asOf: Instant, transactions: [TransactionRow]) {
        self.key = key
        self.asOf = asOf
        self.transactions = transactions
    }
}

/// What a product is, in the words of App Store Connect.
package enum ProductKind: String, Sendable, CaseIterable, Codable {
    /// A subscription that Apple renews.
    case autoRenewable = "auto_renewable"
    /// A subscription that ends after the catalog's period. Apple knows no end of it.
    case nonRenewing = "non_renewing"
    /// What is used up, such as coins. Apple stops listing it when the app finishes its transaction.
    case consumable
    /// What a customer keeps.
    case nonConsumable = "non_consumable"

    /// Whether a purchase stays with the customer who bought it, on every device: what was used up, or runs for that
    /// customer, cannot move with an Apple account.
    package var staysWithCustomer: Bool {
        switch self {
        case .consumable, .nonRenewing: true
        case .autoRenewable, .nonConsumable: false
        }
    }
}
