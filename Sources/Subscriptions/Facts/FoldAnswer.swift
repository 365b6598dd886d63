/// One step in which a whole answer is folded into what is known.
package enum FoldStep: Sendable {
    /// The part of the answer about a subscription, with what is known of its line items elsewhere.
    case part(SubscriptionEvidence, elsewhere: LineItemsElsewhere?)
    /// A period moves from one subscription to another one that the answer names.
    case move(LineItemMove)
    /// What the answer shows of a subscription besides its own part.
    case shown(SubscriptionEvidence)
}

extension Evidence {
    /// Folds the whole answer in the one order that settlements and explanations share: all that it names, with the
    /// periods that it moves, then what took the place of replaced periods that moved. `take` folds one step in;
    /// `known` gives what is then known of the subscriptions that the answer is about, and of those that hold its line
    /// items.
    package func forEachStep(known: () -> [SubscriptionState], _ take: (FoldStep) -> Void) {
        let before = known()
        let left = Dictionary(before.map { ($0.facts.originalTransactionID, $0.facts.successors) }) { first, _ in first
        }
        let said = showingLineItemsOnce { left[$0.subscription]?[$0.item] != nil }
        let elsewhere = said.lineItemsElsewhere(among: before)
        // A subscription that keeps only older periods loses its newest one before its own part is folded in. That part
        // may be later than the end of the period, which the emptied subscription would else report itself.
        let emptied = said.emptied(among: before)
        var moved: Set<LineItemPlace> = []
        for isEmptied in emptied.isEmpty ? [false] : [false, true] {
            for id in said.subscriptions where emptied.contains(id) == isEmptied {
                take(.part(said.slice(of: id), elsewhere: elsewhere[id]))
            }
            for move in said.moves(among: known().map(\.facts)) {
                guard let item = move.row.chargeKey,
                    moved.insert(LineItemPlace(item: item, subscription: move.from)).inserted
                else { continue }
                take(.move(move))
            }
        }
        for slice in said.replacementsElsewhere(among: known().map(\.facts)) { take(.shown(slice)) }
    }

    /// Returns the subscriptions that lose a period to another id and of which the answer shows only older ones.
    private func emptied(among known: [SubscriptionState]) -> Set<OriginalTransactionID> {
        let (all, states) = (subscriptions, known.map(\.facts))
        guard states.contains(where: { $0.originalTransactionID != all.first }) || all.count > 1 else { return [] }
        let rows = transactions.filter { $0.source != .deviceReceipt }
        let shown = Dictionary(grouping: rows, by: \.chargeKey).mapValues { Set($0.map(\.originalTransactionID)) }
        return Set(
            states.filter { facts in
                let (id, own) = (facts.originalTransactionID, slice(of: facts.originalTransactionID).transactions)
                return facts.periods.contains { period in
                    period.movedTo == nil && own.allSatisfy { $0.purchasedAt < period.purchasedAt }
                        && period.chargeKeys.contains { shown[$0].map { !$0.contains(id) } ?? false }
                }
            }.map(\.originalTransactionID))
    }

    /// Returns the answer as if it showed each line item under one id, where it shows one period under several, because
    /// a line item is one charge. The smallest id counts, but one from which the period moved away comes last: an
    /// answer that shows it elsewhere, too, takes no move back. Under the other ids the answer only shows where the
    /// period was, like the older receipt of a device.
    package func showingLineItemsOnce(_ hasLeft: (LineItemPlace) -> Bool) -> Evidence {
        guard subscriptions.count > 1 else { return self }
        let shown = Dictionary(grouping: transactions.indices) { index -> WebOrderLineItemID? in
            let row = transactions[index]
            return row.source != .deviceReceipt && row.isPurchasedPeriod ? row.chargeKey : nil
        }
        var (rows, isOnce) = (transactions, true)
        for (item, places) in shown {
            let first = rows[places[0]]
            guard let item, places.contains(where: { rows[$0].originalTransactionID != first.originalTransactionID }),
                places.allSatisfy({ rows[$0].isSamePeriod(as: first) })
            else { continue }
            func rank(_ index: Int) -> (Int, OriginalTransactionID) {
                let id = rows[index].originalTransactionID
                return (hasLeft(LineItemPlace(item: item, subscription: id)) ? 1 : 0, id)
            }
            // Statuses name a period but are no list of where it is.
            let listed = places.filter { rows[$0].source != .statuses }
            guard let winner = listed.min(by: { rank($0) < rank($1) }).map({ rows[$0] }) else { continue }
            for index in places where rows[index].originalTransactionID != winner.originalTransactionID {
                rows[index].onlyShows(before: winner.asOf)
                isOnce = false
            }
        }
        if isOnce { return self }
        var once = self
        once.transactions = rows
        return once
    }
}

/// A line item under an original transaction id.
package struct LineItemPlace: Sendable, Hashable {
    package var item: WebOrderLineItemID
    package var subscription: OriginalTransactionID
}

extension SubscriptionFacts {
    /// The subscriptions to which its periods moved, by line item.
    package var successors: [WebOrderLineItemID: OriginalTransactionID] {
        periods.reduce(into: [:]) { known, period in
            guard let successor = period.movedTo else { return }
            for key in period.chargeKeys { known[key] = successor }
        }
    }
}

extension TransactionRow {
    /// Makes it a statement that states nothing but that the period was here before an instant.
    fileprivate mutating func onlyShows(before instant: Instant) {
        source = .deviceReceipt
        asOf = min(asOf, instant - Delay(milliseconds: 1))
        (cancelledAt, cancellationReason, cancellationForm) = (nil, nil, nil)
        isUpgraded = false
        self.revocationPercentage = nil
    }
}
