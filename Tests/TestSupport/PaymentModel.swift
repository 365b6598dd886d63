package import Subscriptions

/// What pays which order by the rule of docs/purchases.md, read aloud: by trying every way to pay, cause after cause. Tests
/// compare the one function that decides it, and what a ledger did, with this. Where proofs claim, what a proof claimed
/// before comes first.
package func modelPayments(
    _ transactions: [PayingTransaction], _ orders: [PayableOrder], isClaiming: Bool = false
) -> [String: PayingTransaction.Bought] {
    let sorted = transactions.sorted { left, right in
        (isClaiming && left.isClaimed ? 0 : 1, left.purchasedAt, left.bought.number)
            < (isClaiming && right.isClaimed ? 0 : 1, right.purchasedAt, right.bought.number)
    }
    typealias Fits = (PayingTransaction, PayableOrder) -> Bool
    func isTheirs(_ one: PayingTransaction, _ order: PayableOrder) -> Bool { one.owner == order.customer }
    func fits(_ one: PayingTransaction, _ order: PayableOrder) -> Bool {
        mayPay(one, order) && order.awaits == nil && [nil, one.quantity].contains(order.quantity)
    }
    let named: [Fits] = [
        { one, order in one.tokenNames == .order(order.id) && (isTheirs(one, order) || one.isClaimable) },
        { one, order in
            mayPay(one, order) && isTheirs(one, order) && one.namedFor.contains(order.id)
                && order.late(for: one) <= 600_000
        },
    ]
    let others: [Fits] = [
        { one, order in
            fits(one, order) && one.provedFor.contains(order.id) && (isTheirs(one, order) || one.isClaimable)
        },
        { one, order in fits(one, order) && isTheirs(one, order) && one.sentFor.contains(order.id) },
        { one, order in fits(one, order) && isTheirs(one, order) && order.isOpen },
    ]
    let turns: [Fits] = [
        { one, order in order.late(for: one) <= 0 },
        { one, order in (1...600_000).contains(order.late(for: one)) && !one.isAcknowledged },
    ]
    func isPair(_ one: PayingTransaction, _ order: PayableOrder) -> Bool {
        one.productID == order.productID && !isTwin(one, of: order.customer, transactions, orders)
    }
    /// Whether its customer owns something of the product that cannot pay it, so that it needs no payment.
    func needsNone(_ order: PayableOrder) -> Bool {
        order.ownedBy.contains { owned in
            !transactions.contains { one in
                one.bought == owned && isPair(one, order)
                    && (named.contains { $0(one, order) }
                        || turns.contains { $0(one, order) } && others.contains { $0(one, order) })
            }
        }
    }
    var payer: [String: PayingTransaction.Bought] = [:]
    func pay(where fits: Fits) {
        payer = bestWay(to: payer, sorted, orders) { isPair($0, $1) && fits($0, $1) }
    }
    for rule in named { pay(where: rule) }
    for isOwned in [false, true] {
        for turn in turns {
            for rule in others { pay { turn($0, $1) && rule($0, $1) && needsNone($1) == isOwned } }
        }
    }
    return payer
}

/// Whether no token and no kind forbids it.
private func mayPay(_ one: PayingTransaction, _ order: PayableOrder) -> Bool {
    switch one.tokenNames {
    case .order: false
    case .customer(let named): named == order.customer && !one.isRenewal
    case nil: !one.isRenewal
    }
}

extension PayableOrder {
    /// How many milliseconds after a purchase it was placed.
    fileprivate func late(for one: PayingTransaction) -> Int64 { (orderedAt - one.purchasedAt).milliseconds }
}

/// Pays in the best way: as many as can, the first ones first, each the order that is nearest to it.
private func bestWay(
    to payer: [String: PayingTransaction.Bought], _ transactions: [PayingTransaction], _ orders: [PayableOrder],
    where fits: (PayingTransaction, PayableOrder) -> Bool
) -> [String: PayingTransaction.Bought] {
    var ways: [(rank: [UInt64], payer: [String: PayingTransaction.Bought])] = [(rank: [], payer: payer)]
    for one in transactions where !payer.values.contains(one.bought) {
        var more = ways.map { (rank: $0.rank + [UInt64.max], payer: $0.payer) }
        for order in orders where fits(one, order) {
            for way in ways where way.payer[order.id] == nil {
                let distance = (order.orderedAt - one.purchasedAt).milliseconds.magnitude
                more.append((rank: way.rank + [distance], payer: way.payer.merging([order.id: one.bought]) { $1 }))
            }
        }
        ways = more
    }
    func idle(_ rank: [UInt64]) -> [Int] { rank.map { $0 == UInt64.max ? 1 : 0 } }
    let best = ways.min { left, right in
        let (first, second) = (idle(left.rank), idle(right.rank))
        guard first == second else { return first.lexicographicallyPrecedes(second) }
        return left.rank.lexicographicallyPrecedes(right.rank)
    }
    return best?.payer ?? payer
}

/// Whether it may be the same purchase as one that its customer has, or claims before it.
private func isTwin(
    _ one: PayingTransaction, of customer: Int64, _ transactions: [PayingTransaction], _ orders: [PayableOrder]
) -> Bool {
    func place(_ other: PayingTransaction) -> (Int, Int64) {
        (other.owner == customer ? 0 : 1, other.bought.number)
    }
    return one.accountToken == nil
        && transactions.contains { other in
            let mayBeTheirs =
                other.owner == customer
                || other.isClaimable && orders.contains { $0.customer == customer && other.provedFor.contains($0.id) }
            return mayBeTheirs && other.accountToken == nil && place(other) < place(one)
                && (other.purchasedAt, other.quantity, other.productID)
                    == (one.purchasedAt, one.quantity, one.productID)
        }
}

extension PayingTransaction.Bought {
    /// The row of the purchase or period.
    package var number: Int64 {
        switch self {
        case .purchase(let id): id
        case .period(let id, _): id
        }
    }
}
