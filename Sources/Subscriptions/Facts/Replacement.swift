/// Finds the replacements of the upgraded periods of one subscription.
///
/// A period that began replaces an upgraded period in three cases: it starts later; it starts at the same instant as
/// another product; or it is another product that was in progress when the upgraded period, charged ahead of time, was
/// taken back before it began. It remains the replacement even if it was itself taken back since.
enum Replacement {
    /// Returns, for every period, the instant at which another took its place; nil if none did, or if it is not
    /// upgraded.
    ///
    /// `periods` must be in canonical order; takes one pass.
    static func instants(in periods: [Period]) -> [Instant?] {
        var instants = [Instant?](repeating: nil, count: periods.count)
        guard periods.contains(where: \.isUpgraded) else { return instants }
        var ends = LatestEnds()
        var begun = periods.filter { !$0.neverBegan }[...]
        var first = 0
        while first < periods.count {
            let start = periods[first].purchasedAt
            let together = periods[first...].prefix { $0.purchasedAt == start }
            let begunTogether = begun.prefix { $0.purchasedAt == start }
            begun = begun[begunTogether.endIndex...]
            let products = Set(begunTogether.map(\.productID))
            for (index, period) in zip(together.indices, together) where period.isUpgraded {
                let hasRival = products.count > (products.contains(period.productID) ? 1 : 0)
                instants[index] = ends.takeover(of: period) ?? (hasRival ? start : begun.first?.purchasedAt)
            }
            for period in begunTogether { ends.note(period) }
            first = together.endIndex
        }
        return instants
    }

    /// Of all periods that started so far, the two products whose access ends last, and when it ends.
    private struct LatestEnds {
        private var latest: (product: ProductID, end: Instant)?
        private var other: (product: ProductID, end: Instant)?

        mutating func note(_ period: Period) {
            let noted = (product: period.productID, end: period.accessEnd)
            guard let known = latest else {
                latest = noted
                return
            }
            if known.product == noted.product {
                latest = known.end < noted.end ? noted : known
            } else if known.end < noted.end {
                (latest, other) = (noted, known)
            } else if other.map({ $0.end < noted.end }) ?? true {
                other = noted
            }
        }

        /// Returns when another product took the place of a period that was taken back before it began.
        func takeover(of period: Period) -> Instant? {
            guard period.neverBegan, let cancelledAt = period.cancelledAt else { return nil }
            let rival = latest?.product == period.productID ? other : latest
            return rival.flatMap { $0.end > cancelledAt ? cancelledAt : nil }
        }
    }
}

extension Period {
    /// The end of its access: its expiry, or earlier if it was taken back.
    var accessEnd: Instant { min(cancelledAt ?? expiresAt, expiresAt) }

    /// When Apple refunded the rest of a replaced period's price; nil if it did not.
    ///
    /// The replacement brings a repayment of its own: Apple dates it as the replacement, and states its share. A refund
    /// of the whole price with another date came beside it.
    func restRefundedAt(replacedAt: Instant?) -> Instant? {
        guard isUpgraded, movedTo == nil, !neverBegan, !isShared, let cancelledAt,
            details.revocationPercentage?.value == Self.wholePricePercentage
        else { return nil }
        let minute = Delay.minutes(1)
        let isRepayment =
            replacedAt.map { $0 - minute <= cancelledAt && cancelledAt <= $0 + minute } ?? (cancelledAt < expiresAt)
        return isRepayment ? nil : cancelledAt
    }

    /// `revocationPercentage` of a refund of the whole price.
    private static let wholePricePercentage = 100_000

    /// Whether it was taken back before it began: charged ahead of time, then refunded or replaced.
    var neverBegan: Bool { cancelledAt.map { $0 < purchasedAt } ?? false }
}

/// A period that Apple shows under another original transaction id than before. A line item is one charge, so the period
/// is one: it belongs to the subscription that the newest statement names.
///
/// In the subscription that lost it the period counts as replaced from its start on, with the successor in its reason.
package struct LineItemMove: Sendable {
    /// The subscription that loses the period.
    package let from: OriginalTransactionID
    /// The row that shows it elsewhere.
    package let row: TransactionRow
    /// A transaction id that the period has in the subscription that loses it.
    let transactionID: TransactionID
    /// Whether the period counts as refunded where it goes.
    package var isRefunded = false
    /// Whether it was replaced. It goes with its mark.
    var isReplaced = false
    /// Whether it was refunded where it was, which was reported there.
    var wasRefunded = false
    /// The event that its refund was taken back by its move; nil where it was not.
    package var reversal: Event?
    /// Whether it moves now; otherwise it is only stated again that it is there.
    package var isNew = true

    /// The subscription that gets the period.
    package var to: OriginalTransactionID { row.originalTransactionID }

    /// Whether who paid keeps access where the successor is another customer's.
    package var givesAccess: Bool { !isRefunded && !isReplaced }

    /// How the reason of a moved period begins; the successor follows.
    fileprivate static let reason = "moved to "

    /// Returns what the answer says about the subscription that loses the period. Who paid keeps access to the period's
    /// end where the successor is another customer's.
    package func evidence(keepsAccess: Bool = false) -> SubscriptionEvidence {
        let moved = TransactionRow(
            path: row.path, source: .latestReceiptInfo, asOf: row.asOf, transactionID: transactionID,
            originalTransactionID: from, webOrderLineItemID: row.webOrderLineItemID, productID: row.productID,
            quantity: row.quantity, purchasedAt: row.purchasedAt, expiresAt: row.expiresAt,
            cancelledAt: row.purchasedAt, cancellationReason: Self.reason + to.text, isUpgraded: true)
        return SubscriptionEvidence(
            originalTransactionID: from, asOf: row.asOf, transactions: [moved], replacedBy: keepsAccess ? nil : to)
    }

    /// Returns whether an event announces what was reported before the period moved: its charge, or its refund.
    package func isAnnounced(by event: Event) -> Bool {
        guard let id = row.webOrderLineItemID, event.detail["web_order_line_item_id"] == .text(id.text) else {
            return false
        }
        switch event.kind {
        case .subscriptionStarted, .trialStarted, .trialConverted, .subscriptionRenewed, .subscriptionRecovered,
            .subscriptionReactivated, .productChanged:
            return true
        case .refundGranted: return wasRefunded
        default: return false
        }
    }
}

extension Evidence {
    /// The rows that may show a known period elsewhere.
    package var movableRows: [TransactionRow] {
        transactions.filter {
            $0.source != .deviceReceipt && $0.source != .statuses && $0.ownership == .purchased
                && $0.webOrderLineItemID != nil && $0.expiresAt != nil
        }
    }

    /// Returns the periods that this answer shows under another original transaction id than a subscription that holds
    /// them; `known` is everything that is known together with this answer.
    ///
    /// Only rows that Apple states now move a period, only between purchases of one product with equal dates, and only to
    /// a subscription from which it has not gone away.
    package func moves(among known: [SubscriptionFacts]) -> [LineItemMove] {
        guard known.count > 1 else { return [] }
        let statements = movableStatements
        let facts = Dictionary(known.map { ($0.originalTransactionID, $0) }) { first, _ in first }
        return known.flatMap { holder in
            holder.periods.indices.compactMap { index -> LineItemMove? in
                let period = holder.periods[index]
                guard let id = period.webOrderLineItemID, let row = statements[id],
                    row.originalTransactionID != holder.originalTransactionID, period.mayMove(by: row),
                    let successor = facts[row.originalTransactionID],
                    let place = successor.periods.firstIndex(where: { $0.webOrderLineItemID == id }),
                    successor.periods[place].movedTo == nil, let transaction = period.transactionIDs.min()
                else { return nil }
                let there = successor.periods[place]
                var move = LineItemMove(
                    from: holder.originalTransactionID, row: row, transactionID: transaction,
                    isRefunded: successor.isRefunded(at: place), isReplaced: there.isUpgraded,
                    wasRefunded: holder.isRefunded(at: index), isNew: period.movedTo == nil)
                if move.wasRefunded, !move.isRefunded { move.reversal = there.reversal(of: period, at: row.asOf) }
                return move
            }
        }
    }

    /// Returns, for each subscription to which a known period of another one comes, what is merged before the answer itself:
    /// the same with the period's refund and upgrade mark as they were known; `known` is all that was known before the
    /// answer.
    ///
    /// So a move takes no refund or mark back by itself, and a refund that comes with the move is news.
    package func beforeMoves(among known: [SubscriptionFacts]) -> [OriginalTransactionID: SubscriptionEvidence] {
        let named = subscriptions
        guard named.count > 1 || known.contains(where: { $0.originalTransactionID != named.first }) else { return [:] }
        let statements = movableStatements
        let facts = Dictionary(known.map { ($0.originalTransactionID, $0) }) { first, _ in first }
        var before: [OriginalTransactionID: SubscriptionEvidence] = [:]
        for holder in known {
            for period in holder.periods {
                guard let id = period.webOrderLineItemID, let row = statements[id], period.movedTo == nil,
                    row.originalTransactionID != holder.originalTransactionID, period.mayMove(by: row),
                    period.cancelledAt != row.cancelledAt || period.isUpgraded != row.isUpgraded,
                    facts[row.originalTransactionID]?.periods.contains(where: { $0.webOrderLineItemID == id }) != true
                else { continue }
                var said = before[row.originalTransactionID] ?? slice(of: row.originalTransactionID)
                for index in said.transactions.indices where said.transactions[index].webOrderLineItemID == id {
                    said.transactions[index].takeRevocation(of: period)
                }
                before[row.originalTransactionID] = said
            }
        }
        return before
    }

    /// The one row about each line item that may show a known period elsewhere.
    private var movableStatements: [WebOrderLineItemID: TransactionRow] {
        var statements: [WebOrderLineItemID: TransactionRow] = [:]
        var ambiguous: Set<WebOrderLineItemID> = []
        for row in movableRows {
            guard let id = row.webOrderLineItemID else { continue }
            if let other = statements[id], other.originalTransactionID != row.originalTransactionID {
                ambiguous.insert(id)
            }
            statements[id] = row
        }
        for id in ambiguous { statements[id] = nil }
        return statements
    }
}

extension TransactionRow {
    /// Whether it states that its period moved to another subscription.
    var statesMove: Bool { isUpgraded && cancellationReason?.hasPrefix(LineItemMove.reason) == true }

    /// States the refund and the upgrade mark of a period, or that it has none, as that was known.
    fileprivate mutating func takeRevocation(of period: Period) {
        let known = period.revocation
        (cancelledAt, cancellationReason, cancellationForm) = (
            known.value.cancelledAt, known.value.reason, known.origin.form
        )
        revocationPercentage = period.details.revocationPercentage?.value
        isUpgraded = period.isUpgraded
        asOf = period.cancelledAt == nil ? period.asOf : known.asOf
    }
}

extension SubscriptionFacts {
    /// Returns whether Apple refunded a period, or the rest of a replaced period's price.
    fileprivate func isRefunded(at index: Int) -> Bool {
        let period = periods[index]
        guard period.isUpgraded else { return period.isRefunded }
        return period.restRefundedAt(replacedAt: Replacement.instants(in: periods)[index]) != nil
    }
}

extension Period {
    /// The subscription that Apple showed with this period since, if it moved.
    package var movedTo: OriginalTransactionID? {
        guard isUpgraded, let reason = revocation.value.reason, reason.hasPrefix(LineItemMove.reason) else {
            return nil
        }
        return OriginalTransactionID(String(reason.dropFirst(LineItemMove.reason.count)))
    }

    /// Returns whether a row of another subscription is a newer statement of this same period.
    fileprivate func mayMove(by row: TransactionRow) -> Bool {
        asOf < row.asOf && details.ownership?.value == .purchased && productID == row.productID
            && purchasedAt == row.purchasedAt && expiresAt == row.expiresAt
    }

    /// Returns the event that the refund of this period, as it was known elsewhere, was taken back by an answer.
    fileprivate func reversal(of refunded: Period, at instant: Instant) -> Event {
        var detail = eventDetail
        detail["reason"] = refunded.revocation.value.reason.map(DetailValue.text)
        detail["not_before"] = .text(refunded.asOf.iso8601)
        return Event(kind: .refundReversed, productID: productID, occurredAt: instant, detail: detail)
    }

    /// The statement by which the period moved, to be folded again; nil if it did not move.
    package func move(from subscription: OriginalTransactionID) -> SubscriptionEvidence? {
        guard let to = movedTo, let transaction = transactionIDs.min() else { return nil }
        let row = TransactionRow(
            path: revocation.path, source: .latestReceiptInfo, asOf: revocation.asOf, transactionID: transaction,
            originalTransactionID: to, webOrderLineItemID: webOrderLineItemID, productID: productID,
            quantity: terms.value.quantity, purchasedAt: purchasedAt, expiresAt: expiresAt)
        return LineItemMove(from: subscription, row: row, transactionID: transaction)
            .evidence(keepsAccess: details.replacedBy == nil)
    }
}

extension SubscriptionState {
    /// The statements of refunds and upgrades that an answer took back and that stand until a second one does, to be folded
    /// again: another subscription may have held the period when Apple made them.
    package var heldRevocations: [SubscriptionEvidence] {
        retractions.compactMap { retraction in
            guard retraction.what != .end,
                let period = facts.periods.first(where: { $0.transactionIDs.contains(retraction.transactionID) }),
                period.cancelledAt != nil, period.movedTo == nil, period.webOrderLineItemID != nil
            else { return nil }
            let terms = period.terms.value
            var row = TransactionRow(
                path: period.revocation.path, source: .latestReceiptInfo, asOf: period.revocation.asOf,
                transactionID: retraction.transactionID, originalTransactionID: facts.originalTransactionID,
                webOrderLineItemID: period.webOrderLineItemID, productID: terms.productID, quantity: terms.quantity,
                purchasedAt: terms.purchasedAt, expiresAt: terms.expiresAt)
            row.takeRevocation(of: period)
            return SubscriptionEvidence(
                originalTransactionID: facts.originalTransactionID, asOf: row.asOf, transactions: [row])
        }
    }
}
