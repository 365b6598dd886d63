import Postgres
import SQL
import Subscriptions

/// What devices sent with proofs for the orders that a batch may pay, and no customer was given: a proof may claim it in
/// any settlement, not only in the first one.
struct ProvablePurchases: Sendable {
    /// The orders for which each purchase was sent, by the keys of the purchases.
    private(set) var orders: [Int64: Set<String>] = [:]
    /// The customers of the orders.
    private(set) var customers: [String: OwnershipClaim] = [:]
    /// The receipts that hold them.
    private(set) var receipts: Set<Int64> = []

    /// No purchases.
    static let none = ProvablePurchases()

    private init() {}

    /// Reads them before any lock. What Apple takes back frees the order that it pays, whatever receipt shows it.
    init(of batch: [Settlement], in transaction: Transaction) throws {
        let takenBack = batch.flatMap(\.purchases).filter { _, evidence in
            evidence.transactions.contains { $0.cancelledAt != nil }
        }
        let rows = try transaction.query(
            Queries.findProvable,
            [.int8s(batch.map(\.claim.receiptID.number))]
                + PurchaseRowKey.parameters(Set(takenBack.map(\.key)).sorted()))
        for row in rows {
            let order = try row.text("order_id")
            orders[try row.int8("purchase_id"), default: []].insert(order)
            receipts.insert(try row.int8("receipt_id"))
            customers[order] = OwnershipClaim(
                customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"), imported: false,
                isNew: false)
        }
    }

    /// The keys of the purchases.
    var purchases: [Int64] { orders.keys.sorted() }
}

/// The orders for which a batch's receipts were sent. What such a receipt holds may pay its order, whenever Apple lists
/// it.
struct OrderReceipts: Sendable {
    /// An order for which a receipt was sent.
    struct Sent: Sendable {
        let orderID: String
        /// Whether a device sent it with a proof.
        let isProved: Bool
        /// Whether it is unpaid, or its payment may move.
        let isPayable: Bool
        /// The transaction that a service named for it.
        let transactionID: TransactionID?
        /// The order's customer, who may claim one transaction by the proof.
        let customer: OwnershipClaim
    }

    /// The orders and transactions among which proofs claim; empty where none does.
    let pool: PaymentPool

    /// What proofs may claim beside the batch's own contents.
    let provable: ProvablePurchases

    private let sent: [ReceiptID: [Sent]]
    private let unclaimablePurchases: Set<Int64>
    private let unclaimableSubscriptions: Set<Int64>

    /// The state of a batch whose receipts were sent for no order.
    static let none = OrderReceipts(sent: [:])

    private init(
        sent: [ReceiptID: [Sent]], pool: PaymentPool = .empty, provable: ProvablePurchases = .none,
        purchases: Set<Int64> = [], subscriptions: Set<Int64> = []
    ) {
        (self.sent, self.pool, self.provable) = (sent, pool, provable)
        (unclaimablePurchases, unclaimableSubscriptions) = (purchases, subscriptions)
    }

    /// Reads the orders of the receipts of a batch. `purchases` and `subscriptions` are its locked rows.
    init(
        of batch: [Settlement], provable: ProvablePurchases, purchases: [Row], subscriptions: [Row],
        in transaction: Transaction
    ) throws {
        let rows = try transaction.query(Queries.readOrderReceipts, [.int8s(batch.map(\.claim.receiptID.number))])
        let sent = try rows.reduce(into: [ReceiptID: [Sent]]()) { sent, row in
            sent[ReceiptID(try row.int8("receipt_id")), default: []].append(try Sent(row: row))
        }
        func mayClaim(_ one: Sent) -> Bool { one.isPayable && (one.isProved || !provable.purchases.isEmpty) }
        let claiming = provable.receipts.union(sent.filter { $0.value.contains(where: mayClaim) }.keys.map(\.number))
        guard !claiming.isEmpty else {
            self.init(sent: sent)
            return
        }
        // Two settlements with proofs of one customer claim one after the other, so that an order never claims twice.
        let claimers = Set(sent.values.joined().filter(mayClaim).map(\.customer) + provable.customers.values)
        try transaction.query(Queries.lockClaimers, [.int8s(Set(claimers.map(\.customer.number)).sorted())])
        let things: [Parameter] = [
            .int8s(try purchases.map { try $0.int8("purchase_id") }),
            .int8s(try subscriptions.map { try $0.int8("subscription_id") }),
        ]
        // A delivery that is being acknowledged at this moment keeps a proof from claiming what it gave.
        try transaction.query(Queries.markDue, things)
        let unclaimable = try transaction.query(Queries.findUnclaimable, things)
        let payable = try transaction.query(Queries.findPayable, [.int8s(claiming.sorted())])
        self.init(
            sent: sent, pool: try PaymentPool(of: payable.map { try $0.text("order_id") }, in: transaction),
            provable: provable,
            purchases: Set(try unclaimable.compactMap { try $0.int8IfPresent("purchase_id") }),
            subscriptions: Set(try unclaimable.compactMap { try $0.int8IfPresent("subscription_id") }))
    }

    /// Returns the orders for which a receipt was sent, the oldest first.
    func orders(of receipt: ReceiptID) -> [Sent] { sent[receipt] ?? [] }

    /// The receipts whose contents may pay an order that they were sent for.
    var paying: [ReceiptID] { sent.filter { $0.value.contains(where: \.isPayable) }.keys.sorted() }

    /// The receipts that were sent for an order.
    var all: [ReceiptID] { sent.keys.sorted() }

    /// Returns the customer of an order for which a receipt was sent.
    func customer(of order: String) -> OwnershipClaim? {
        sent.values.joined().first { $0.orderID == order }?.customer ?? provable.customers[order]
    }

    /// Whether a proof may claim a purchase, as far as its payments, deliveries and owner say.
    func isClaimable(purchase id: Int64) -> Bool { !unclaimablePurchases.contains(id) }

    /// Whether a proof may claim a subscription, likewise.
    func isClaimable(subscription id: Int64) -> Bool { !unclaimableSubscriptions.contains(id) }
}

extension OrderReceipts.Sent {
    fileprivate init(row: Row) throws {
        orderID = try row.text("order_id")
        isProved = try row.bool("is_proved")
        isPayable = try row.bool("is_payable")
        transactionID = try row.textIfPresent("transaction_id").map { TransactionID($0) }
        customer = OwnershipClaim(
            customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"), imported: false,
            isNew: false)
    }
}
