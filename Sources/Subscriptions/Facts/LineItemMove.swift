/// A period that Apple shows under another original transaction id than before. A line item is one charge, so the period
/// is one: it belongs to the subscription that the newest statement names.
///
/// A transaction that is one of several of a period tells no line item: there the transaction id is the charge's.
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
    /// Whether the period was known there first: its charge was announced under that owner, who paid.
    package var isOfPayer = true
    /// Whether it moves now; otherwise it is only stated again that it is there.
    package var isNew = true

    /// The subscription that gets the period.
    package var to: OriginalTransactionID { row.originalTransactionID }

    /// Whether who paid keeps access where the successor is another customer's.
    package var givesAccess: Bool { isOfPayer && !isRefunded && !isReplaced }

    /// How the reason of a moved period begins; the successor follows.
    fileprivate static let reason = "moved to "

    /// Returns what the answer says about the subscription that loses the period. Who paid keeps access to the period's
    /// end where the successor is another customer's.
    package func evidence(keepsAccess: Bool = false) -> SubscriptionEvidence {
        let moved = TransactionRow(
            path: row.path, source: .latestReceiptInfo, asOf: row.asOf, transactionID: transactionID,
            originalTransactionID: from, webOrderLineItemID: row.webOrderLineItemID, productID: row.productID,
            quantity: row.quantity, purchasedAt: row.purchasedAt, expiresAt: row.expiresAt,
            cancelledAt: row.purchasedAt, cancellationReason: Self.reason + to.text, isUpgraded: true, sale: row.sale)
        return SubscriptionEvidence(
            originalTransactionID: from, asOf: row.asOf, transactions: [moved], replacedBy: keepsAccess ? nil : to)
    }

    /// Returns whether an event announces what was reported before the period moved: its charge, or its refund.
    package func isAnnounced(by event: Event) -> Bool {
        guard row.isNamed(in: event) else { return false }
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
    package var movableRows: [TransactionRow] { statedRows.filter { $0.source != .deviceReceipt } }

    /// Those, and the same of a device's receipt, which moves nothing but may be older than what is known.
    private var statedRows: [TransactionRow] {
        transactions.filter { $0.source != .statuses && $0.isPurchasedPeriod }
    }

    /// Returns the periods that this answer shows under another original transaction id than a subscription that holds
    /// them; `known` is everything that is known together with this answer.
    ///
    /// Only rows that Apple states now move a period, only between purchases of one product with equal dates, and only to
    /// a subscription from which it has not gone away.
    func moves(among known: [SubscriptionFacts]) -> [LineItemMove] {
        guard known.count > 1 else { return [] }
        let statements = movableStatements
        let facts = Dictionary(known.map { ($0.originalTransactionID, $0) }) { first, _ in first }
        var firstIDs: [WebOrderLineItemID: Int64] = [:]
        for period in known.flatMap(\.periods) {
            guard let id = period.id else { continue }
            for key in period.chargeKeys { firstIDs[key] = min(firstIDs[key] ?? id, id) }
        }
        return known.flatMap { holder in
            holder.periods.indices.compactMap { index -> LineItemMove? in
                let period = holder.periods[index]
                guard let id = period.chargeKeys.first(where: { statements[$0] != nil }), let row = statements[id],
                    period.mayMove(by: row, from: holder.originalTransactionID),
                    let successor = facts[row.originalTransactionID],
                    let place = successor.periods.firstIndex(where: { $0.chargeKeys.contains(id) }),
                    successor.periods[place].movedTo == nil, let transaction = period.transactionIDs.min()
                else { return nil }
                let there = successor.periods[place]
                var move = LineItemMove(
                    from: holder.originalTransactionID, row: row, transactionID: transaction,
                    isRefunded: successor.isRefunded(at: place), isReplaced: there.isUpgraded,
                    wasRefunded: holder.isRefunded(at: index),
                    isOfPayer: firstIDs[id].map { $0 == period.id } ?? true, isNew: period.movedTo == nil)
                if move.wasRefunded, !move.isRefunded { move.reversal = there.reversal(of: period, at: row.asOf) }
                return move
            }
        }
    }

    /// Returns, for each subscription of the answer, what is known of its line items under other ids; `known` is all that
    /// was known before the answer.
    func lineItemsElsewhere(among known: [SubscriptionFacts]) -> [OriginalTransactionID: LineItemsElsewhere] {
        let named = subscriptions
        guard named.count > 1 || known.contains(where: { $0.originalTransactionID != named.first }) else { return [:] }
        let (statements, rows) = (movableStatements, statedRows)
        let shown = Set(rows.compactMap(\.chargeKey))
        let facts = Dictionary(known.map { ($0.originalTransactionID, $0) }) { first, _ in first }
        func holds(_ row: TransactionRow) -> Bool {
            guard let id = row.chargeKey else { return false }
            return facts[row.originalTransactionID]?.periods.contains { $0.chargeKeys.contains(id) } ?? false
        }
        var elsewhere: [OriginalTransactionID: LineItemsElsewhere] = [:]
        var newest = statements
        for holder in known {
            for period in holder.periods where period.movedTo == nil {
                guard let id = period.chargeKeys.first(where: shown.contains) else { continue }
                if let row = statements[id], period.mayMove(by: row, from: holder.originalTransactionID), !holds(row) {
                    elsewhere[row.originalTransactionID, default: LineItemsElsewhere()]
                        .expect(period, of: holder, as: row) {
                            statements[$0]?.originalTransactionID != row.originalTransactionID
                        }
                }
                guard period.upgrade.origin != .unspoken, period.details.ownership?.value == .purchased else {
                    continue
                }
                let said = period.statement(under: holder.originalTransactionID)
                newest[id] = newest[id].map { $0.isNewer(than: said) ? $0 : said } ?? said
            }
        }
        for row in rows {
            guard let id = row.chargeKey, let said = newest[id], row.isSamePeriod(as: said),
                row.originalTransactionID != said.originalTransactionID, said.isNewer(than: row), !holds(row),
                row.asOf < said.asOf || statements[id] != nil
            else { continue }
            let move = LineItemMove(from: row.originalTransactionID, row: said, transactionID: row.transactionID)
            elsewhere[row.originalTransactionID, default: LineItemsElsewhere()].gone[id] = move.evidence()
        }
        return elsewhere
    }

    /// Returns what this answer shows of replaced periods that moved before it was read: the subscription from which they
    /// moved holds what took their place.
    func replacementsElsewhere(among known: [SubscriptionFacts]) -> [SubscriptionEvidence] {
        let items = Set(movableRows.compactMap(\.chargeKey))
        return known.compactMap { facts in
            guard let index = facts.periods.lastIndex(where: \.isUpgraded) else { return nil }
            let period = facts.periods[index]
            guard period.movedTo == nil, period.details.replacedBy == nil,
                let id = period.chargeKeys.first(where: items.contains),
                Replacement.instants(in: facts.periods)[index] == nil,
                let holder = known.first(where: { other in
                    other.periods.contains {
                        $0.chargeKeys.contains(id) && $0.movedTo == facts.originalTransactionID
                    } && other.holdsReplacement(of: period)
                })
            else { return nil }
            return period.replaced(in: facts.originalTransactionID, by: holder.originalTransactionID, at: period.asOf)
        }
    }

    /// The one row about each line item that may show a known period elsewhere. Rows of different periods show nothing.
    private var movableStatements: [WebOrderLineItemID: TransactionRow] {
        var statements: [WebOrderLineItemID: TransactionRow] = [:]
        var ambiguous: Set<WebOrderLineItemID> = []
        for row in movableRows {
            guard let id = row.chargeKey else { continue }
            if let other = statements[id], other.originalTransactionID != row.originalTransactionID {
                ambiguous.insert(id)
            }
            statements[id] = row
        }
        for id in ambiguous { statements[id] = nil }
        return statements
    }
}

/// What is known under other original transaction ids of the line items that an answer shows of a subscription.
package struct LineItemsElsewhere: Sendable {
    /// The periods that come to it, as they were known where they were, with the transaction ids of the answer.
    private var coming: [Period] = []
    /// When that was known, and what was known of their renewal.
    private var asOf = Instant(milliseconds: .min)
    private var renewal: Fact<Renewal>?
    /// The subscription that holds what took the place of a replaced period that comes, by the start of the period.
    private var replacements: [Instant: OriginalTransactionID] = [:]
    /// Newer statements that the answer's periods are elsewhere.
    fileprivate(set) var gone: [WebOrderLineItemID: SubscriptionEvidence] = [:]

    /// Notes a period that comes; `stays` tells which line items do not come with it.
    fileprivate mutating func expect(
        _ period: Period, of holder: SubscriptionFacts, as row: TransactionRow,
        where stays: (WebOrderLineItemID) -> Bool
    ) {
        var known = period
        (known.id, known.transactionIDs) = (nil, [row.transactionID])
        coming.append(known)
        (asOf, renewal) = (max(asOf, holder.asOf), newest(renewal, holder.renewal))
        guard let marked = row.isUpgraded ? Period(row: row) : period.isUpgraded ? period : nil else { return }
        let successor =
            holder.holdsReplacement(of: marked, where: stays)
            ? holder.originalTransactionID : period.details.replacedBy?.value
        if successor != row.originalTransactionID { replacements[period.purchasedAt] = successor }
    }

    /// Returns everything that is to be folded of an answer's part about the subscription, in order. A move takes no refund
    /// and no mark back by itself, so these come first as they were known, and what comes with the move is news.
    func slices(of slice: SubscriptionEvidence) -> [SubscriptionEvidence] {
        var (before, said) = (slice, slice)
        for period in coming {
            for index in before.transactions.indices
            where before.transactions[index].chargeKey.map(period.chargeKeys.contains) ?? false {
                let row = before.transactions[index]
                let seats = period.details.sale?.value.seats?.revoked ?? 0
                if period.cancelledAt != row.cancelledAt || period.isUpgraded != row.isUpgraded
                    || row.sale?.seats?.revoked ?? 0 < seats
                {
                    before.transactions[index].takeRevocation(of: period)
                }
            }
        }
        func takeReplacement(_ slice: inout SubscriptionEvidence) {
            guard slice.replacedBy == nil else { return }
            slice.replacedBy = slice.transactions.filter(\.isUpgraded).map(\.purchasedAt).max()
                .flatMap { replacements[$0] }
        }
        takeReplacement(&before)
        takeReplacement(&said)
        return (before == said ? [said] : [before, said])
            + gone.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Returns what is known of the subscription before an answer as if the periods that come had always been its own; nil
    /// where none comes. `stored` is its own state.
    func seed(of stored: SubscriptionState?, _ slice: SubscriptionEvidence, policy: Policy) -> SubscriptionState? {
        guard let latest = coming.map(\.purchasedAt).max() else { return nil }
        let items = Set(coming.flatMap(\.chargeKeys))
        var own = stored?.facts
        if own?.periods.isEmpty ?? true {
            // The first event of an unknown subscription reports all that began before the periods that come.
            var early = slice
            early.transactions.removeAll {
                $0.purchasedAt > latest || $0.chargeKey.map(items.contains) ?? false
            }
            early.renewals = []
            own = SubscriptionFacts(early)
        }
        let facts = SubscriptionFacts(
            originalTransactionID: slice.originalTransactionID, asOf: max(stored?.asOf ?? asOf, asOf),
            periods: PeriodGrouping.grouped((own?.periods ?? []) + coming), renewal: newest(own?.renewal, renewal))
        return SubscriptionState(
            facts: facts, policy: policy, version: stored?.version ?? 0, retractions: stored?.retractions ?? [])
    }

    /// Returns whether an event reports an end or a failure that came before the periods were last known where they were.
    func isEarlierEnd(_ event: Event) -> Bool {
        switch event.kind {
        case .subscriptionExpired, .trialExpired, .billingRetryEntered, .billingGraceEntered, .billingGraceExpired:
            return event.occurredAt <= asOf
        default: return false
        }
    }

    /// Returns whether an event says of a period that comes what was reported where it was: its start, its end, or an earlier
    /// failure.
    func isReported(_ event: Event) -> Bool {
        let isOfEnd = coming.contains { event.detail["expires_at"] == .text($0.expiresAt.iso8601) }
        switch event.kind {
        case .subscriptionStarted, .trialStarted:
            return coming.contains { $0.isNamed(in: event) }
        case .subscriptionExpired, .trialExpired: return isOfEnd
        case .billingRetryEntered, .billingGraceEntered, .billingGraceExpired:
            return isOfEnd && event.occurredAt <= asOf
        default: return false
        }
    }
}

extension WebOrderLineItemID {
    /// The place of a line item where a transaction is one of several of its period.
    fileprivate init(of transaction: TransactionID) { self.init("transaction \(transaction.text)") }
}

extension Period {
    /// What tells its charge under every original transaction id.
    package var chargeKeys: [WebOrderLineItemID] {
        [webOrderLineItemID].compactMap(\.self)
            + (isOneOfSeveral || webOrderLineItemID != nil
                ? transactionIDs.sorted().map(WebOrderLineItemID.init(of:)) : [])
    }

    /// Returns whether an event is about it.
    fileprivate func isNamed(in event: Event) -> Bool {
        if let id = webOrderLineItemID, event.detail["web_order_line_item_id"] == .text(id.text) { return true }
        return isOneOfSeveral && transactionIDs.contains { event.detail["transaction_id"] == .text($0.text) }
    }
}

extension TransactionRow {
    /// What tells its charge under every original transaction id: its line item; its transaction, where it is one of
    /// several of its period.
    package var chargeKey: WebOrderLineItemID? {
        webOrderLineItemID ?? (sale?.isOneOfSeveral == true ? WebOrderLineItemID(of: transactionID) : nil)
    }

    /// Returns whether an event is about it.
    fileprivate func isNamed(in event: Event) -> Bool {
        if let id = webOrderLineItemID { return event.detail["web_order_line_item_id"] == .text(id.text) }
        return sale?.isOneOfSeveral == true && event.detail["transaction_id"] == .text(transactionID.text)
    }

    /// Whether it states that its period moved to another subscription.
    var statesMove: Bool { isUpgraded && cancellationReason?.hasPrefix(LineItemMove.reason) == true }

    /// Whether it shows a period that the subscription's own customer bought, with what tells the charge.
    var isPurchasedPeriod: Bool { ownership == .purchased && chargeKey != nil && expiresAt != nil }

    /// Returns whether the other row shows the same product with the same dates.
    func isSamePeriod(as other: TransactionRow) -> Bool {
        productID == other.productID && purchasedAt == other.purchasedAt && expiresAt == other.expiresAt
    }

    /// Returns whether it is the newer statement of where a line item is; of the same instant, the one that names the
    /// smaller id, because a customer who came back is later listed under the first one.
    fileprivate func isNewer(than other: TransactionRow) -> Bool {
        asOf == other.asOf ? originalTransactionID < other.originalTransactionID : asOf > other.asOf
    }

    /// States the refund and the upgrade mark of a period, or that it has none, as that was known.
    fileprivate mutating func takeRevocation(of period: Period) {
        let known = period.revocation
        (cancelledAt, cancellationReason, cancellationForm) = (
            known.value.cancelledAt, known.value.reason, known.origin.form
        )
        revocationPercentage = period.details.revocationPercentage?.value
        sale = period.details.sale?.value ?? sale
        isUpgraded = period.isUpgraded
        asOf = period.cancelledAt == nil ? period.asOf : known.asOf
    }
}

extension SubscriptionFacts {
    /// Returns whether one of its periods took the place of a replaced period that moved away: it began when that one was
    /// replaced or since, and before that one would have ended.
    fileprivate func holdsReplacement(
        of replaced: Period, where stays: (WebOrderLineItemID) -> Bool = { _ in true }
    ) -> Bool {
        periods.contains { period in
            period.transactionIDs.isDisjoint(with: replaced.transactionIDs)
                && (period.webOrderLineItemID == nil || period.webOrderLineItemID != replaced.webOrderLineItemID)
                && !period.neverBegan && period.chargeKeys.allSatisfy(stays)
                && period.purchasedAt < replaced.expiresAt
                && period.purchasedAt >= (replaced.cancelledAt.map { $0 - .minutes(1) } ?? replaced.purchasedAt)
                && (replaced.cancelledAt != nil
                    || period.productID != replaced.productID && period.isShared == replaced.isShared)
        }
    }

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
    fileprivate func mayMove(by row: TransactionRow, from holder: OriginalTransactionID) -> Bool {
        guard row.originalTransactionID != holder, details.ownership?.value == .purchased, productID == row.productID,
            purchasedAt == row.purchasedAt, expiresAt == row.expiresAt
        else { return false }
        return movedTo == nil && asOf == row.asOf ? row.originalTransactionID < holder : asOf < row.asOf
    }

    /// Its newest statement by Apple itself, as a row.
    fileprivate func statement(under subscription: OriginalTransactionID) -> TransactionRow {
        TransactionRow(
            path: upgrade.path, source: .latestReceiptInfo, asOf: upgrade.asOf,
            transactionID: transactionIDs.min() ?? TransactionID(""), originalTransactionID: subscription,
            webOrderLineItemID: webOrderLineItemID, productID: productID, quantity: terms.value.quantity,
            purchasedAt: purchasedAt, expiresAt: expiresAt, sale: details.sale?.value)
    }

    /// States that another subscription of the group took the place of this replaced period.
    fileprivate func replaced(
        in subscription: OriginalTransactionID, by successor: OriginalTransactionID, at instant: Instant
    ) -> SubscriptionEvidence {
        var row = statement(under: subscription)
        row.takeRevocation(of: self)
        row.asOf = instant
        return SubscriptionEvidence(
            originalTransactionID: subscription, asOf: instant, transactions: [row], replacedBy: successor)
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
            quantity: terms.value.quantity, purchasedAt: purchasedAt, expiresAt: expiresAt, sale: details.sale?.value)
        return LineItemMove(from: subscription, row: row, transactionID: transaction)
            .evidence(keepsAccess: details.replacedBy == nil)
    }
}

extension SubscriptionState {
    /// What another subscription may have held when Apple stated it, to be folded again: refunds and upgrades that an answer
    /// took back and that stand until a second one does, and what took the place of replaced periods.
    package var statedElsewhere: [SubscriptionEvidence] {
        let replaced = facts.periods.compactMap { period -> SubscriptionEvidence? in
            guard period.isUpgraded, period.movedTo == nil, !period.chargeKeys.isEmpty,
                let successor = period.details.replacedBy
            else { return nil }
            return period.replaced(in: facts.originalTransactionID, by: successor.value, at: successor.asOf)
        }
        return replaced + heldRevocations
    }

    private var heldRevocations: [SubscriptionEvidence] {
        retractions.compactMap { retraction in
            guard retraction.what != .end,
                let period = facts.periods.first(where: { $0.transactionIDs.contains(retraction.transactionID) }),
                period.cancelledAt != nil || retraction.what == .seats, period.movedTo == nil,
                !period.chargeKeys.isEmpty
            else { return nil }
            let terms = period.terms.value
            var row = TransactionRow(
                path: period.revocation.path, source: .latestReceiptInfo, asOf: period.revocation.asOf,
                transactionID: retraction.transactionID, originalTransactionID: facts.originalTransactionID,
                webOrderLineItemID: period.webOrderLineItemID, productID: terms.productID, quantity: terms.quantity,
                purchasedAt: terms.purchasedAt, expiresAt: terms.expiresAt)
            row.takeRevocation(of: period)
            if retraction.what == .seats { row.asOf = period.details.sale?.asOf ?? row.asOf }
            return SubscriptionEvidence(
                originalTransactionID: facts.originalTransactionID, asOf: row.asOf, transactions: [row])
        }
    }
}
