import Postgres
import SQL
import Subscriptions

/// The orders for which a batch's receipts were sent. What such a receipt holds may pay its order, whenever Apple lists
/// it.
struct OrderReceipts: Sendable {
    /// An order for which a receipt was sent.
    struct Sent: Sendable {
        let orderID: String
        /// Whether a device sent it with a proof.
        let isProved: Bool
        let isUnpaid: Bool
        let productID: ProductID
        let orderedAt: Instant
        /// The order's customer, who may claim one transaction by the proof.
        let customer: OwnershipClaim
    }

    /// How long after a purchase its order may have been placed: the clocks of a device, of Apple and of this database
    /// differ.
    static let orderedLate = Delay.seconds(600)

    private let sent: [ReceiptID: [Sent]]
    private let unclaimablePurchases: Set<Int64>
    private let unclaimableSubscriptions: Set<Int64>

    /// The state of a batch whose receipts were sent for no order.
    static let none = OrderReceipts(sent: [:], purchases: [], subscriptions: [])

    private init(sent: [ReceiptID: [Sent]], purchases: Set<Int64>, subscriptions: Set<Int64>) {
        self.sent = sent
        (unclaimablePurchases, unclaimableSubscriptions) = (purchases, subscriptions)
    }

    /// Reads the orders of receipts. `purchases` and `subscriptions` are the locked rows of the batch.
    init(
        of receipts: [ReceiptID], purchases: [Row], subscriptions: [Row], in transaction: Transaction
    ) throws {
        let rows = try transaction.query(Queries.readOrderReceipts, [.int8s(receipts.map(\.number))])
        let sent = try rows.reduce(into: [ReceiptID: [Sent]]()) { sent, row in
            sent[ReceiptID(try row.int8("receipt_id")), default: []].append(try Sent(row: row))
        }
        guard sent.values.joined().contains(where: \.mayClaim) else {
            self.init(sent: sent, purchases: [], subscriptions: [])
            return
        }
        let things: [Parameter] = [
            .int8s(try purchases.map { try $0.int8("purchase_id") }),
            .int8s(try subscriptions.map { try $0.int8("subscription_id") }),
        ]
        // A delivery that is being acknowledged at this moment keeps a proof from claiming what it gave.
        try transaction.query(Queries.markDue, things)
        let unclaimable = try transaction.query(Queries.findUnclaimable, things)
        self.init(
            sent: sent, purchases: Set(try unclaimable.compactMap { try $0.int8IfPresent("purchase_id") }),
            subscriptions: Set(try unclaimable.compactMap { try $0.int8IfPresent("subscription_id") }))
    }

    /// Returns the orders for which a receipt was sent, the oldest first.
    func orders(of receipt: ReceiptID) -> [Sent] { sent[receipt] ?? [] }

    /// The receipts whose contents may pay an order that they were sent for.
    var paying: [ReceiptID] { sent.filter { $0.value.contains(where: \.isUnpaid) }.keys.sorted() }

    /// The receipts that were sent for an order.
    var all: [ReceiptID] { sent.keys.sorted() }

    /// Whether a proof may claim a purchase, as far as its payments, deliveries and owner say.
    func isClaimable(purchase id: Int64) -> Bool { !unclaimablePurchases.contains(id) }

    /// Whether a proof may claim a subscription, likewise.
    func isClaimable(subscription id: Int64) -> Bool { !unclaimableSubscriptions.contains(id) }
}

extension OrderReceipts.Sent {
    /// Whether its proof may still claim a transaction.
    var mayClaim: Bool { isProved && isUnpaid }

    /// Whether something was bought in time for the order.
    func matches(_ product: ProductID, boughtAt instant: Instant) -> Bool {
        product == productID && orderedAt <= instant + OrderReceipts.orderedLate
    }

    fileprivate init(row: Row) throws {
        orderID = try row.text("order_id")
        isProved = try row.bool("is_proved")
        isUnpaid = try row.bool("is_unpaid")
        productID = ProductID(try row.text("product_id"))
        orderedAt = try row.instant("created_at")
        customer = OwnershipClaim(
            customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"), imported: false,
            isNew: false)
    }
}
