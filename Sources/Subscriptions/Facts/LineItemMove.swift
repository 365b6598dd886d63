/// A period that Apple shows under another original transaction id than before. A line item is one charge, so the
/// period belongs to the subscription that the newest statement names. Where a period has several transactions, the
/// transaction id tells the charge.
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
        var moved = TransactionRow(
            path: row.path, source: .latestReceiptInfo, asOf: row.asOf, transactionID: transactionID,
            originalTransactionID: from, webOrderLineItemID: row.webOrderLineItemID, productID: row.productID,
            quantity: row.quantity, purchasedAt: row.purchasedAt, expiresAt: row.expiresAt,
            cancelledAt: row.purchasedAt, cancellationReason: Self.reason + to.text, isUpgraded: true)
        moved.sale = row.sale
        return SubscriptionEvidence(
            originalTransactionID: from, asOf: row.asOf, transactions: [moved], replacedBy: keepsAccess ? nil : to)
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
    /// them; `known` is everything that is known together with it. Only rows that Apple states now move a period, only
    /// between purchases of one product with equal dates, and only to a subscription from which it has not gone away.
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
            // The last one goes first: it decides what the rest is, so that none of them ends on the way.
            holder.periods.reversed().compactMap { period -> LineItemMove? in
                guard let id = period.chargeKeys.first(where: { statements[$0] != nil }), let row = statements[id],
                    period.mayMove(by: row, from: holder.originalTransactionID),
                    let successor = facts[row.originalTransactionID],
                    let place = successor.periods.firstIndex(where: { $0.chargeKeys.contains(id) }),
                    successor.periods[place].movedTo == nil, let transaction = period.transactionIDs.min()
                else { return nil }
                return LineItemMove(
                    from: holder.originalTransactionID, row: row, transactionID: transaction,
                    isRefunded: successor.isRefunded(at: place), isReplaced: successor.periods[place].isUpgraded,
                    isOfPayer: firstIDs[id].map { $0 == period.id } ?? true, isNew: period.movedTo == nil)
            }
        }
    }

    /// Returns what was known, before the answer, of each of its subscriptions' line items under other ids.
    func lineItemsElsewhere(among known: [SubscriptionState]) -> [OriginalTransactionID: LineItemsElsewhere] {
        let named = subscriptions
        guard named.count > 1 || known.contains(where: { $0.facts.originalTransactionID != named.first }) else {
            return [:]
        }
        let (statements, rows) = (movableStatements, statedRows)
        let shown = Set(rows.compactMap(\.chargeKey))
        let facts = Dictionary(known.map { ($0.facts.originalTransactionID, $0.facts) }) { first, _ in first }
        func held(_ row: TransactionRow) -> Period? {
            guard let id = row.chargeKey else { return nil }
            return facts[row.originalTransactionID]?.periods.first { $0.chargeKeys.contains(id) }
        }
        var elsewhere: [OriginalTransactionID: LineItemsElsewhere] = [:]
        var newest = statements
        for state in known {
            let holder = state.facts
            for period in holder.periods where period.movedTo == nil {
                guard let id = period.chargeKeys.first(where: shown.contains) else { continue }
                if let row = statements[id], period.mayMove(by: row, from: holder.originalTransactionID),
                    held(row).map({ $0.movedTo != nil }) ?? true
                {
                    elsewhere[row.originalTransactionID, default: LineItemsElsewhere()]
                        .expect(period, of: state, as: row) {
                            statements[$0]?.originalTransactionID != row.originalTransactionID
                        }
                }
                guard period.upgrade.origin != .unspoken, period.details.ownership?.value == .purchased else {
                    continue
                }
                let said = period.statement(under: holder.originalTransactionID, by: period.upgrade.origin)
                newest[id] = newest[id].map { $0.isNewer(than: said) ? $0 : said } ?? said
            }
        }
        for row in rows {
            guard let id = row.chargeKey, let said = newest[id], row.isSamePeriod(as: said),
                row.originalTransactionID != said.originalTransactionID, said.isNewer(than: row), held(row) == nil,
                row.asOf < said.asOf || statements[id] != nil
            else { continue }
            let move = LineItemMove(from: row.originalTransactionID, row: said, transactionID: row.transactionID)
            elsewhere[row.originalTransactionID, default: LineItemsElsewhere()].gone[id] = move.evidence()
        }
        return elsewhere
    }

    /// Returns what this answer shows of replaced periods that moved earlier, away from what took their place.
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
    /// The periods that may come to it, with everything that was known of them where they were.
    private var coming: [Period] = []
    /// The subscriptions that hold them.
    private(set) var holders: Set<OriginalTransactionID> = []
    /// What an answer took back of them there, and waits for a second answer.
    private var retractions: [Retraction] = []
    /// When that was known, and what was known of their renewal.
    private(set) var asOf = Instant(milliseconds: .min)
    private var renewal: Fact<Renewal>?
    /// Newer statements that the answer's periods are elsewhere.
    fileprivate(set) var gone: [WebOrderLineItemID: SubscriptionEvidence] = [:]

    /// Notes a period that may come; `stays` tells which line items do not come with it.
    fileprivate mutating func expect(
        _ period: Period, of holder: SubscriptionState, as row: TransactionRow,
        where stays: (WebOrderLineItemID) -> Bool
    ) {
        var known = period
        (known.id, known.transactionIDs) = (nil, [row.transactionID])
        known.details.arrival = FactOrigin(asOf: row.asOf, path: row.path)
        if let marked = row.isUpgraded ? Period(row: row) : period.isUpgraded ? period : nil {
            let replacedBy: Fact<OriginalTransactionID>? =
                holder.facts.holdsReplacement(of: marked, where: stays)
                ? Fact(holder.facts.originalTransactionID, asOf: holder.asOf, path: "") : period.details.replacedBy
            known.details.replacedBy = replacedBy?.value == row.originalTransactionID ? nil : replacedBy
        }
        coming.append(known)
        holders.insert(holder.facts.originalTransactionID)
        retractions += holder.retractions.filter { period.transactionIDs.contains($0.transactionID) }.map {
            Retraction(of: row.transactionID, $0.what, end: $0.end, since: $0.since)
        }
        (asOf, renewal) = (max(asOf, holder.asOf), newest(renewal, holder.facts.renewal))
    }

    /// Returns the periods that came: `facts` holds them as its own, and did not before.
    func arrivals(in facts: SubscriptionFacts, since stored: SubscriptionFacts?) -> [Period] {
        func isHeld(_ period: Period, by facts: SubscriptionFacts) -> Bool {
            facts.periods.contains { $0.movedTo == nil && $0.isCharge(of: period) }
        }
        return coming.filter { period in
            isHeld(period, by: facts) && !(stored.map { isHeld(period, by: $0) } ?? false)
        }
    }

    /// Returns what is known of the subscription before an answer as if the periods that came had always been its own;
    /// `stored` is its own state. One that had been here before comes back as it was known where it was, and the first
    /// answer that shows it here again counts as the first one that took back what this one takes back.
    func seed(
        of stored: SubscriptionState?, _ slice: SubscriptionEvidence, with arrivals: [Period], policy: Policy
    ) -> SubscriptionState {
        var own = stored?.facts
        if own?.periods.isEmpty ?? true {
            // The first event of an unknown subscription reports all that began before the periods that come.
            let earliest = arrivals.map(\.purchasedAt).min()
            let items = Set(arrivals.flatMap(\.chargeKeys))
            var early = slice
            early.transactions.removeAll { row in
                earliest.map { row.purchasedAt > $0 } ?? false || row.chargeKey.map(items.contains) ?? false
            }
            early.renewals = []
            own = SubscriptionFacts(early)
        }
        var (periods, waiting) = (own?.periods ?? [], (stored?.retractions ?? []) + retractions)
        for var period in arrivals {
            if let index = periods.firstIndex(where: { $0.isCharge(of: period) }) {
                let before = periods.remove(at: index)
                (period.id, period.transactionIDs) = (before.id, period.transactionIDs.union(before.transactionIDs))
                waiting += waiting.filter { $0.what == .upgrade && before.transactionIDs.contains($0.transactionID) }
                    .flatMap { back in
                        (period.details.sale?.value.seats == nil ? [.revocation] : [.revocation, .seats])
                            .map { Retraction(of: back.transactionID, $0, since: back.since) }
                    }
            }
            periods.append(period)
        }
        let facts = SubscriptionFacts(
            originalTransactionID: slice.originalTransactionID, asOf: asOf, periods: periods,
            renewal: newest(own?.renewal, renewal))
        return SubscriptionState(facts: facts, policy: policy, version: stored?.version ?? 0, retractions: waiting)
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

    /// Returns whether both are one charge, under whatever id.
    func isCharge(of other: Period) -> Bool { !Set(chargeKeys).isDisjoint(with: other.chargeKeys) }
}

extension TransactionRow {
    /// What tells its charge under every original transaction id: its line item, or one of several transactions.
    package var chargeKey: WebOrderLineItemID? {
        webOrderLineItemID ?? (self.sale?.isOneOfSeveral == true ? WebOrderLineItemID(of: transactionID) : nil)
    }

    /// Whether it states that its period moved to another subscription.
    var statesMove: Bool { isUpgraded && cancellationReason?.hasPrefix(LineItemMove.reason) == true }

    /// Whether it shows a period that the subscription's own customer bought, with what tells the charge.
    var isPurchasedPeriod: Bool { self.ownership == .purchased && chargeKey != nil && expiresAt != nil }

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
        self.revocationPercentage = period.details.revocationPercentage?.value
        if let sale = period.details.sale?.value { self.sale = sale }
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

    /// A statement by Apple itself that it is under an original transaction id, as a row of this origin.
    fileprivate func statement(under subscription: OriginalTransactionID, by origin: FactOrigin) -> TransactionRow {
        var row = TransactionRow(
            path: origin.path, source: .latestReceiptInfo, asOf: origin.asOf,
            transactionID: transactionIDs.min() ?? TransactionID(""), originalTransactionID: subscription,
            webOrderLineItemID: webOrderLineItemID, productID: productID, quantity: terms.value.quantity,
            purchasedAt: purchasedAt, expiresAt: expiresAt)
        row.sale = details.sale?.value
        return row
    }

    /// States that another subscription of the group took the place of this replaced period.
    fileprivate func replaced(
        in subscription: OriginalTransactionID, by successor: OriginalTransactionID, at instant: Instant
    ) -> SubscriptionEvidence {
        var row = statement(under: subscription, by: upgrade.origin)
        row.takeRevocation(of: self)
        row.asOf = instant
        return SubscriptionEvidence(
            originalTransactionID: subscription, asOf: instant, transactions: [row], replacedBy: successor)
    }

    /// What was known of it before it came from another subscription, to be folded again; nil where it did not come.
    fileprivate func beforeArrival(at subscription: OriginalTransactionID) -> SubscriptionEvidence? {
        guard let arrival = details.arrival else { return nil }
        let asOf = arrival.asOf - Delay(milliseconds: 1)
        var known = self
        // Product and dates are what they were, else it had not moved.
        if terms.asOf > asOf { known.terms.origin = FactOrigin(asOf: asOf, path: "") }
        if revocation.asOf > asOf { known.revocation = Fact(Revocation(), origin: .unspoken) }
        if upgrade.asOf > asOf { known.upgrade = Fact(false, origin: .unspoken) }
        known.details = details.only(statedBy: asOf)
        known.renewal = renewal?.stated(by: asOf)
        return SubscriptionEvidence(
            originalTransactionID: subscription, asOf: asOf, transactions: [], elsewhere: [known])
    }

    /// The statement by which the period moved, to be folded again; nil if it did not move.
    package func move(from subscription: OriginalTransactionID) -> SubscriptionEvidence? {
        guard let to = movedTo, let transaction = transactionIDs.min() else { return nil }
        let row = statement(under: to, by: revocation.origin)
        return LineItemMove(from: subscription, row: row, transactionID: transaction)
            .evidence(keepsAccess: details.replacedBy == nil)
    }
}

extension SubscriptionState {
    /// What was stated of other subscriptions, to be folded again: what was known of periods before they came from there,
    /// and what took the place of replaced ones.
    package var statedElsewhere: [SubscriptionEvidence] {
        facts.periods.compactMap { $0.beforeArrival(at: facts.originalTransactionID) }
            + facts.periods.compactMap { period -> SubscriptionEvidence? in
                guard period.isUpgraded, period.movedTo == nil, !period.chargeKeys.isEmpty,
                    let successor = period.details.replacedBy
                else { return nil }
                return period.replaced(in: facts.originalTransactionID, by: successor.value, at: successor.asOf)
            }
    }
}
