/// The one-time purchases of one account: those made, those that wait for an approval, and the times of the next ones.
struct PurchaseHistory: Sendable {
    /// The most purchases that have ids.
    static let purchasesMax = 100_000

    var purchases: [OneTimePurchase] = []
    var pending: [PendingPurchase] = []
    /// The number of purchases that ever waited for an approval.
    var askedCount = 0
    let scale: TimeScale
    let temper: UInt64
    private let buysSeveral: Bool
    private let isDrawn: Bool
    /// What is bought repeatedly, the milliseconds between two purchases, and the next one.
    private var habits: [(product: OneTimeProduct, length: Int64, next: StoreTime)] = []

    init(script: CustomerScript, start: StoreTime, scale: TimeScale, temper: UInt64) {
        func length(_ months: Double) -> Int64 { max(1000, scale.milliseconds(months: max(0.01, months))) }
        self.scale = scale
        self.temper = temper
        self.isDrawn = script.isDrawn
        self.buysSeveral = script.buysSeveral
        if let every = script.coinsEveryMonths.map(length) {
            habits.append((.coins, every, (start + every / 2).wholeSecond))
        }
        if let every = script.seasonEveryMonths.map(length) {
            habits.append((.season, every, (start + every / 3).wholeSecond))
        }
        if script.ownsLifetime || !(script.subscribes || script.beginsEmpty) { add(.lifetime, at: start) }
    }

    /// Makes the purchases that the script has until an instant.
    mutating func advance(to moment: StoreTime) {
        while let place = habits.indices.min(by: { habits[$0].next < habits[$1].next }), habits[place].next <= moment {
            guard purchases.count < Self.purchasesMax else { return habits = [] }
            let (product, length, next) = habits[place]
            add(product, at: next)
            habits[place].next = later(than: next, by: length)
        }
    }

    /// Returns the first later instant at which a response about these purchases changes; nil without one.
    func nextChange(after moment: StoreTime) -> StoreTime? {
        let changes = purchases.suffix(Self.unsettledMax).compactMap { $0.nextChange(after: moment) }
        return (changes + habits.map { $0.next }).min()
    }

    /// The newest purchases that can still change by themselves: coins are bought at most every few seconds.
    private static let unsettledMax = 500

    /// Returns when a product is bought again, about `length` after the last time.
    private func later(than moment: StoreTime, by length: Int64) -> StoreTime {
        var numbers = SeededGenerator(seed: temper, stream: 4_000_000 + UInt64(purchases.count))
        return (moment + max(1000, Int64(Double(length) * numbers.between(0.5, 1.5)))).wholeSecond
    }

    /// Adds a purchase of the script. The app finishes coins a month later; some drawn customers get refunds.
    private mutating func add(_ product: OneTimeProduct, at moment: StoreTime) {
        let month = scale.length(of: .monthly)
        var order = PurchaseOrder(product: product)
        if buysSeveral, product == .coins { order.quantity = drawnQuantity }
        var purchase = OneTimePurchase(ordinal: purchases.count, order: order, bookedAt: moment)
        var numbers = SeededGenerator(seed: temper, stream: 5_000_000 + UInt64(purchases.count))
        if product == .coins { purchase.finishedAt = moment + month }
        let (share, shortest, longest) = product == .lifetime ? (0.25, 0.5, 6.0) : (0.12, 0.1, 0.8)
        if isDrawn, numbers.chance(share) {
            let wait = Int64(Double(month) * numbers.between(shortest, longest))
            purchase.refunds = [OneTimePurchase.Refund(at: moment + wait)]
        }
        purchases.append(purchase)
    }

    private var drawnQuantity: PurchaseQuantity {
        var numbers = SeededGenerator(seed: temper, stream: 6_000_000 + UInt64(purchases.count))
        return PurchaseQuantity(1 + numbers.below(10)) ?? .one
    }
}

/// The manual actions. An action that makes no sense is refused and changes nothing.
extension PurchaseHistory {
    /// Makes a purchase and returns its number. It stays listed until it is finished, and is refunded only on request.
    mutating func buy(_ order: PurchaseOrder, at moment: StoreTime) throws(ActionRefused) -> Int {
        try admit(order, at: moment)
        purchases.append(OneTimePurchase(ordinal: purchases.count, order: order, bookedAt: moment))
        return purchases.count - 1
    }

    /// Asks for the approval of a purchase, which waits until then.
    mutating func ask(
        _ order: PurchaseOrder, of account: String, at moment: StoreTime
    ) throws(ActionRefused) -> PendingPurchase {
        try admit(order, at: moment)
        askedCount += 1
        let asked = PendingPurchase(id: "\(account)-\(askedCount)", askedAt: moment, order: order)
        pending.append(asked)
        return asked
    }

    /// Makes a purchase that waited, and returns its number.
    mutating func approve(_ id: String?, at moment: StoreTime) throws(ActionRefused) -> Int {
        let place = try place(ofPending: id)
        let bought = try buy(pending[place].order, at: moment)
        pending.remove(at: place)
        return bought
    }

    /// Drops a purchase that waited.
    mutating func decline(_ id: String?) throws(ActionRefused) { pending.remove(at: try place(ofPending: id)) }

    /// Refunds a purchase, or the newest one that is listed and was never refunded.
    mutating func refund(_ ordinal: Int?, at moment: StoreTime) throws(ActionRefused) {
        let newest = purchases.lastIndex { purchase in
            purchase.isListed(at: moment) && purchase.refunds.allSatisfy { $0.reversedAt != nil }
        }
        guard let index = ordinal ?? newest else { throw ActionRefused("there is no purchase to refund") }
        guard purchases[index].refund(asOf: moment) == nil else { throw ActionRefused("it is refunded already") }
        purchases[index].refunds.removeAll { $0.at > moment }
        purchases[index].refunds.append(OneTimePurchase.Refund(at: moment))
    }

    /// Reverses the refund of a purchase, or of the newest refunded one.
    mutating func reverseRefund(_ ordinal: Int?, at moment: StoreTime) throws(ActionRefused) {
        let newest = purchases.lastIndex { $0.refund(asOf: moment) != nil }
        guard let index = ordinal ?? newest,
            let refund = purchases[index].refunds.lastIndex(where: { $0.isInEffect(at: moment) })
        else { throw ActionRefused("there is no refund to reverse") }
        purchases[index].refunds[refund].reversedAt = moment
    }

    /// Finishes a purchase. As with StoreKit, the second time changes nothing.
    mutating func finish(_ ordinal: Int, at moment: StoreTime) {
        purchases[ordinal].finishedAt = min(purchases[ordinal].finishedAt ?? moment, moment)
    }

    /// Throws why a purchase cannot be made, if so.
    private func admit(_ order: PurchaseOrder, at moment: StoreTime) throws(ActionRefused) {
        guard purchases.count < Self.purchasesMax else { throw ActionRefused("the account has its most purchases") }
        guard order.product.kind == .nonConsumable else { return }
        guard order.quantity == .one else { throw ActionRefused("a non-consumable is bought once") }
        let isOwned = purchases.contains { $0.product == order.product && $0.refund(asOf: moment) == nil }
        guard !isOwned else { throw ActionRefused("the account owns it already") }
    }

    private func place(ofPending id: String?) throws(ActionRefused) -> Int {
        guard let place = pending.firstIndex(where: { $0.id == id }) else {
            throw ActionRefused("there is no such pending purchase")
        }
        return place
    }
}

/// A customer's request that Apple refund a transaction.
package struct RefundRequest: Sendable {
    /// Apple's `consumptionRequestReason`.
    package enum Reason: String, Codable, Sendable, CaseIterable {
        /// The customer did not mean to buy.
        case unintended = "UNINTENDED_PURCHASE"
        /// The customer did not get what was bought.
        case fulfilment = "FULFILLMENT_ISSUE"
        /// The customer did not like it.
        case unsatisfied = "UNSATISFIED_WITH_PURCHASE"
        /// The law gives the right.
        case legal = "LEGAL"
        /// Anything else.
        case other = "OTHER"
    }

    let transactionID: String
    let reason: Reason?
    let at: StoreTime
    var declinedAt: StoreTime?
}

/// The actions of an account that are about its one-time purchases, and the requests for refunds.
extension Account {
    /// Buys the one-time product that an action names, or asks for the approval of the purchase.
    mutating func buy(_ action: CustomerAction) throws(ActionRefused) -> ActionOutcome {
        guard !script.sendsLegacyReceipts else {
            throw ActionRefused("the receipts of iOS 6 show no one-time purchase here")
        }
        let order = PurchaseOrder(
            product: action.item ?? .coins, quantity: action.quantity ?? .one, buyer: action.buyer)
        guard action.isDeferred != true else { return .pending(try purchases.ask(order, of: name, at: now)) }
        return .bought(try purchases.buy(order, at: now))
    }

    /// Finishes the one-time purchase that an action names, as the app does after it delivered.
    mutating func finish(_ action: CustomerAction) throws(ActionRefused) {
        guard let id = action.transactionID else { throw ActionRefused("finish needs a transaction_id") }
        // Apps finish the transactions of subscriptions too; that changes nothing in the answers.
        guard period(id) == nil else { return }
        if let ordinal = try purchaseNumber(action) { purchases.finish(ordinal, at: now) }
    }

    /// Returns the number of the purchase that an action names; nil when it names none.
    func purchaseNumber(_ action: CustomerAction) throws(ActionRefused) -> Int? {
        guard let id = action.transactionID else { return nil }
        guard let ordinal = purchaseNumber(of: id) else { throw ActionRefused("there is no such transaction") }
        return ordinal
    }

    /// Asks Apple for the refund of the transaction that an action names, else of the newest one.
    mutating func requestRefund(_ action: CustomerAction) throws(ActionRefused) {
        guard let id = action.transactionID ?? newestTransactionID, hasTransaction(id) else {
            throw ActionRefused("there is no such transaction")
        }
        refundRequests.append(RefundRequest(transactionID: id, reason: action.requestReason, at: now))
    }

    /// Declines the open request for a refund that an action names, else the newest one.
    mutating func declineRefund(_ action: CustomerAction) throws(ActionRefused) {
        let open = refundRequests.lastIndex { request in
            request.declinedAt == nil && (action.transactionID ?? request.transactionID) == request.transactionID
        }
        guard let open else { throw ActionRefused("there is no request for a refund") }
        refundRequests[open].declinedAt = now
    }

    private var newestTransactionID: String? {
        let period = begun.map { (at: $0.head.bookedAt, id: $0.ids.transactionID(of: $0.head.ordinal)) }
        let purchase = bought.map { (at: $0.bookedAt, id: ids.purchase($0.ordinal)) }
        return (period + purchase).max { $0.at < $1.at }?.id
    }
}
