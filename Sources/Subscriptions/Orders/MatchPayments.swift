/// An order as payments see it.
package struct PayableOrder: Sendable, Hashable {
    /// The order's id, a UUID in lower case.
    package let id: String
    /// The key of its customer, as the name means now.
    package let customer: Int64
    package let productID: ProductID
    /// How many; nil where Apple sells one at a time, so that it does not count.
    package let quantity: Int?
    /// When it was placed.
    package let orderedAt: Instant
    /// Whether it waits for its payment, or did when it was paid.
    package let isOpen: Bool
    /// The transaction that the caller named last, while Apple does not list it: only a token or a name pays meanwhile.
    package var awaits: TransactionID?
    /// What its customer owns of the product, where Apple sells that for good. If some of it cannot pay the order, the
    /// order needs no payment, and every other one comes before it.
    package var ownedBy: Set<PayingTransaction.Bought> = []

    package init(id: String, customer: Int64, productID: ProductID, quantity: Int?, orderedAt: Instant, isOpen: Bool) {
        (self.id, self.customer, self.productID) = (id, customer, productID)
        (self.quantity, self.orderedAt, self.isOpen) = (quantity, orderedAt, isOpen)
    }
}

/// A transaction that Apple did not take back, as payments see it.
package struct PayingTransaction: Sendable, Hashable {
    /// What was bought: a one-time purchase, or a period of a subscription.
    package enum Bought: Sendable, Hashable {
        /// The row of a one-time purchase.
        case purchase(Int64)
        /// The rows of a period and of its subscription.
        case period(Int64, of: Int64)

        /// The place among transactions of one instant.
        fileprivate var place: Int64 {
            switch self {
            case .purchase(let id), .period(let id, _): id
            }
        }
    }

    /// What an `app_account_token` names.
    package enum Naming: Sendable, Hashable {
        /// An order, by its id.
        case order(String)
        /// A customer, by the key.
        case customer(Int64)
    }

    package let bought: Bought
    /// Apple's environment.
    package let environment: StoreEnvironment
    package let productID: ProductID
    /// How many.
    package let quantity: Int
    /// The earliest date that Apple ever gave for it. So a restored copy pays nothing.
    package let purchasedAt: Instant
    /// The key of the customer who owns it; nil: it has no owner.
    package let owner: Int64?
    /// Whether a proof may claim it: it has no owner, or an uploader who was given nothing of it.
    package var isClaimable = false
    /// Whether a proof claimed it before.
    package var isClaimed = false
    /// Whether it renews a subscription.
    package var isRenewal = false
    /// Whether what it gives was acknowledged, or a person skipped it.
    package var isAcknowledged = false
    /// Whether what it gives is due or acknowledged. Then it is no possible duplicate, even if its owner gets a twin.
    package var hasDelivery = false
    /// Whether a delivered twin makes it a possible duplicate.
    package var isDuplicate = false
    /// Its `app_account_token`, in lower case.
    package var accountToken: String?
    /// What the token names; nil: nothing that is known.
    package var tokenNames: Naming?
    /// The orders for which a receipt that holds it was sent with a proof.
    package var provedFor: Set<String> = []
    /// The orders for which a service sent a receipt that holds it.
    package var sentFor: Set<String> = []
    /// The orders for which the caller named it.
    package var namedFor: Set<String> = []

    package init(
        _ bought: Bought, in environment: StoreEnvironment, productID: ProductID, quantity: Int, purchasedAt: Instant,
        owner: Int64?
    ) {
        (self.bought, self.environment, self.productID) = (bought, environment, productID)
        (self.quantity, self.purchasedAt, self.owner) = (quantity, purchasedAt, owner)
    }
}

/// A transaction that pays an order.
package struct Payment: Sendable, Hashable {
    /// Why a transaction pays an order, the strongest first.
    package enum Cause: String, Sendable, CaseIterable, Comparable {
        /// It carries the order's `app_account_token`.
        case token
        /// The caller named the transaction.
        case transaction
        /// A device sent it for the order, with a proof.
        case proof
        /// A service sent it for the order.
        case order
        /// The owner had ordered the product, and names no order.
        case product

        /// Orders causes, the stronger first.
        package static func < (left: Cause, right: Cause) -> Bool {
            (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
        }
    }

    /// How long after a purchase its order may be placed, because the clocks of device, Apple and database differ.
    package static let orderedLate = Delay.seconds(600)

    package let orderID: String
    /// What pays it.
    package let bought: PayingTransaction.Bought
    /// Why.
    package let cause: Cause
}

/// Decides which transactions pay which orders: the one rule of payments, stated in docs/purchases.md.
///
/// The result does not depend on the order of the arguments. Payments that cannot change any more, their orders and
/// their transactions are left out of both. Where proofs claim, what a proof claimed before comes first, so that an order
/// claims once. What then belongs to a customer pays by its date, whichever was claimed first.
package func matchPayments(
    _ transactions: [PayingTransaction], of orders: [PayableOrder], isClaiming: Bool = false
) -> [Payment] {
    var steps = 0
    return matchPayments(transactions, of: orders, isClaiming: isClaiming, steps: &steps)
}

/// The same; adds to `steps` how many orders were looked at to seat transactions.
func matchPayments(
    _ transactions: [PayingTransaction], of orders: [PayableOrder], isClaiming: Bool = false, steps: inout Int
) -> [Payment] {
    let ordersOfProduct = Dictionary(grouping: orders, by: \.productID)
    let alike = Dictionary(grouping: transactions, by: Likeness.init).filter { $0.value.count > 1 }
    let customers = Dictionary(orders.map { ($0.id, $0.customer) }) { first, _ in first }
    var pairs = transactions.flatMap { transaction in
        (ordersOfProduct[transaction.productID] ?? []).compactMap { order -> Pair? in
            let twins = alike[Likeness(transaction)]?.filter { $0.mayBelong(to: order.customer, customers) } ?? []
            return isPossibleDuplicate(transaction, among: twins, of: order.customer)
                ? nil : Pair(transaction, order, isClaiming: isClaiming)
        }
    }
    let payers = Dictionary(grouping: pairs, by: \.order.id).mapValues { Set($0.map(\.transaction.bought)) }
    for index in pairs.indices {
        let order = pairs[index].order
        if !order.ownedBy.isSubset(of: payers[order.id] ?? []) { pairs[index].comeLast() }
    }
    var (payments, paid, spent): ([Payment], Set<String>, Set<PayingTransaction.Bought>) = ([], [], [])
    for (_, equal) in Dictionary(grouping: pairs, by: \.strength).sorted(by: { $0.key < $1.key }) {
        let free = equal.filter { !paid.contains($0.order.id) && !spent.contains($0.transaction.bought) }
        var seating = Seating(free)
        seating.moveNearer()
        steps += seating.steps
        for pair in seating.pairs {
            payments.append(Payment(orderID: pair.order.id, bought: pair.transaction.bought, cause: pair.cause))
            paid.insert(pair.order.id)
            spent.insert(pair.transaction.bought)
        }
    }
    return payments
}

/// Chooses among pairs of equal strength by augmenting paths (Kuhn 1955): an older transaction comes before a newer one,
/// then each pays the nearest order that leaves the others one.
private struct Seating {
    /// How many orders were looked at.
    private(set) var steps = 0
    /// What each chosen transaction may pay, the nearest order first; the oldest transaction first.
    private var choices: [[Pair]] = []
    /// Which of them pays an order.
    private var seats: [String: Int] = [:]

    /// Seats transactions while each has an order.
    init(_ pairs: [Pair]) {
        let sorted = pairs.sorted()
        // A search that failed has seen these: their payers can pay nothing else, so they never become free.
        var closed: Set<String> = []
        var place = sorted.startIndex
        while place < sorted.endIndex {
            let end = sorted[place...].firstIndex { $0.transaction.bought != sorted[place].transaction.bought }
            choices.append(Array(sorted[place..<(end ?? sorted.endIndex)]))
            place = end ?? sorted.endIndex
            var tried = closed
            if !seat(choices.endIndex - 1, &tried) {
                closed = tried
                choices.removeLast()
            }
        }
    }

    /// The pairs that pay.
    var pairs: [Pair] {
        choices.indices.flatMap { one in choices[one].filter { seats[$0.order.id] == one } }
    }

    /// Lets each transaction pay the nearest order that leaves the others one, the oldest first.
    mutating func moveNearer() {
        var places = Dictionary(seats.map { ($0.value, $0.key) }) { first, _ in first }
        var settled: Set<String> = []
        for one in choices.indices {
            // Without these, those that pay them now would pay nothing.
            var needed = settled
            for pair in choices[one] where !needed.contains(pair.order.id) {
                steps += 1
                guard let own = places[one], own != pair.order.id else { break }
                seats[own] = nil
                var tried = needed.union([pair.order.id])
                if let other = seats[pair.order.id], !seat(other, &tried) {
                    seats[own] = one
                    needed = tried
                    continue
                }
                seats[pair.order.id] = one
                places = Dictionary(seats.map { ($0.value, $0.key) }) { first, _ in first }
                break
            }
            if let own = places[one] { settled.insert(own) }
        }
    }

    /// Gives a transaction an order that is not yet tried; others move for it where they can.
    private mutating func seat(_ one: Int, _ tried: inout Set<String>) -> Bool {
        for pair in choices[one] where !tried.contains(pair.order.id) {
            steps += 1
            guard seats[pair.order.id] == nil else { continue }
            seats[pair.order.id] = one
            return true
        }
        for pair in choices[one] where tried.insert(pair.order.id).inserted {
            steps += 1
            guard let other = seats[pair.order.id], seat(other, &tried) else { continue }
            seats[pair.order.id] = one
            return true
        }
        return false
    }
}

/// What two listings of the same purchase have in common.
private struct Likeness: Hashable {
    let environment: StoreEnvironment
    let productID: ProductID
    let purchasedAt: Instant
    let quantity: Int

    init(_ one: PayingTransaction) {
        (environment, productID) = (one.environment, one.productID)
        (purchasedAt, quantity) = (one.purchasedAt, one.quantity)
    }
}

extension PayingTransaction {
    /// Whether a customer owns it, or may claim it by a proof.
    fileprivate func mayBelong(to customer: Int64, _ customers: [String: Int64]) -> Bool {
        owner == customer || isClaimable && provedFor.contains { customers[$0] == customer }
    }
}

/// Whether Apple may have listed the same purchase of a customer under another id: the same product, instant and quantity,
/// and neither has an account token. The one counts that the customer owns, then the first one.
private func isPossibleDuplicate(
    _ one: PayingTransaction, among alike: [PayingTransaction], of customer: Int64
) -> Bool {
    guard case .purchase = one.bought, one.accountToken == nil, !one.hasDelivery else { return false }
    func rank(_ other: PayingTransaction) -> (Int, Int64) { (other.owner == customer ? 0 : 1, other.bought.place) }
    return one.isDuplicate
        || alike.contains { other in
            // What is a duplicate itself makes no other one a duplicate.
            guard case .purchase = other.bought, other.accountToken == nil, !other.isDuplicate else { return false }
            return rank(other) < rank(one)
        }
}

/// A transaction that may pay an order, with its place among pairs of equal strength.
private struct Pair: Comparable {
    /// The turn and the cause: stronger pairs are paid first.
    struct Strength: Hashable, Comparable {
        let turn: Turn
        let cause: Payment.Cause

        static func < (left: Strength, right: Strength) -> Bool {
            left.turn == right.turn ? left.cause < right.cause : left.turn.rawValue < right.turn.rawValue
        }
    }

    /// When the pair's turn comes.
    enum Turn: Int {
        /// The transaction or the caller names the other one: that decides alone.
        case named
        /// The order was placed first.
        case inTime
        /// The order was placed within ten minutes after the purchase.
        case late
        /// The same of orders for what the customer owns by something else.
        case ownedInTime, ownedLate
    }

    let transaction: PayingTransaction
    let order: PayableOrder
    let cause: Payment.Cause
    private var turn: Turn
    /// Whether it comes before older ones, because a proof claimed it before.
    private let isFirst: Bool

    var strength: Strength { Strength(turn: turn, cause: cause) }

    /// Returns nil where the transaction cannot pay the order.
    init?(_ transaction: PayingTransaction, _ order: PayableOrder, isClaiming: Bool) {
        (self.transaction, self.order) = (transaction, order)
        isFirst = isClaiming && transaction.isClaimed
        let isOwn = transaction.owner == order.customer
        switch transaction.tokenNames {
        case .order(let id):
            guard id == order.id, isOwn || transaction.isClaimable else { return nil }
            (cause, turn) = (.token, .named)
            return
        case .customer(let named) where named != order.customer: return nil
        case .customer, nil: break
        }
        guard !transaction.isRenewal, order.orderedAt <= transaction.purchasedAt + Payment.orderedLate else {
            return nil
        }
        if isOwn, transaction.namedFor.contains(order.id) {
            (cause, turn) = (.transaction, .named)
            return
        }
        let isLate = order.orderedAt > transaction.purchasedAt
        guard order.awaits == nil, order.quantity.map({ $0 == transaction.quantity }) ?? true,
            !(isLate && transaction.isAcknowledged)
        else { return nil }
        turn = isLate ? .late : .inTime
        if transaction.provedFor.contains(order.id), isOwn || transaction.isClaimable {
            cause = .proof
        } else if isOwn, transaction.sentFor.contains(order.id) {
            cause = .order
        } else if isOwn, order.isOpen {
            cause = .product
        } else {
            return nil
        }
    }

    /// Lets every other order come before this one, unless the pair is decided alone.
    mutating func comeLast() {
        switch turn {
        case .inTime: turn = .ownedInTime
        case .late: turn = .ownedLate
        case .named, .ownedInTime, .ownedLate: break
        }
    }

    /// Milliseconds between both: an order near the purchase comes first.
    private var distance: UInt64 { (order.orderedAt - transaction.purchasedAt).milliseconds.magnitude }

    static func < (left: Pair, right: Pair) -> Bool {
        let (first, second) = (left.transaction, right.transaction)
        if left.isFirst != right.isFirst { return left.isFirst }
        return (first.purchasedAt, first.bought.place, left.distance, left.order.orderedAt, left.order.id)
            < (second.purchasedAt, second.bought.place, right.distance, right.order.orderedAt, right.order.id)
    }
}

/// Where an order is.
package enum OrderState: String, Sendable, CaseIterable {
    /// It was placed; the customer was not asked to pay yet.
    case created
    /// The device shows Apple's payment sheet.
    case purchasing
    /// Apple waits for another person, such as a parent who has to approve.
    case deferred
    /// A transaction pays it; what it gives is due.
    case paid
    /// What it gives was carried out.
    case delivered
    /// The customer cancelled the payment.
    case cancelled
    /// The payment failed.
    case failed
    /// It was not paid in time.
    case expired
    /// What it gave was taken back.
    case refunded

    /// Whether it waits for its payment. A payment also revives what was cancelled, failed or expired.
    package var isOpen: Bool {
        switch self {
        case .created, .purchasing, .deferred: true
        case .paid, .delivered, .cancelled, .failed, .expired, .refunded: false
        }
    }
}
