/// What must have been delivered to a customer: a one-time purchase, even a finished one, or a period of a
/// subscription.
package struct DeliveryTruth: Codable, Sendable {
    /// A refund, and its reversal.
    package struct Refund: Codable, Sendable {
        /// The date of Apple's refund.
        package var at: Int64
        /// The date of its reversal, when one came.
        package var reversed: Int64?

        enum CodingKeys: String, CodingKey {
            case at = "at_ms"
            case reversed = "reversed_ms"
        }
    }

    /// The customer of the app who bought it.
    package var customer: String
    package var product: String
    package var kind: DeliveryKind
    package var quantity: Int
    package var transactionID: String
    /// Apple's id of the chain; the transaction id for a one-time purchase.
    package var originalTransactionID: String
    /// Absent for one-time purchases and for family members.
    package var webOrderLineItemID: String?
    package var appAccountToken: String?
    /// When the store first showed it.
    package var booked: Int64
    /// The date of the purchase.
    package var purchase: Int64
    package var expires: Int64?
    /// `PURCHASED`, `FAMILY_SHARED` or `ASSIGNED`.
    package var ownership: String
    /// When another product replaced a period.
    package var replaced: Int64?
    /// The date of the refund in effect.
    package var refunded: Int64?
    /// All refunds, in order.
    package var refunds: [Refund]
    /// When the app finished a one-time purchase.
    package var finished: Int64?
    /// Whether Apple's responses list it.
    package var isListed: Bool

    enum CodingKeys: String, CodingKey {
        case customer, product, kind, quantity, ownership, refunds
        case transactionID = "transaction_id"
        case originalTransactionID = "original_transaction_id"
        case webOrderLineItemID = "web_order_line_item_id"
        case appAccountToken = "app_account_token"
        case booked = "booked_ms"
        case purchase = "purchase_ms"
        case expires = "expires_ms"
        case replaced = "replaced_ms"
        case refunded = "refunded_ms"
        case finished = "finished_ms"
        case isListed = "listed"
    }
}

/// A purchase that waits for the approval of the family organiser.
package struct PendingTruth: Codable, Sendable {
    /// The id for `approve` and `decline`.
    package var pendingID: String
    /// The customer of the app who asked.
    package var customer: String
    package var product: String
    package var quantity: Int
    package var appAccountToken: String?
    /// The date of the question.
    package var asked: Int64

    enum CodingKeys: String, CodingKey {
        case customer, product, quantity
        case pendingID = "pending_id"
        case appAccountToken = "app_account_token"
        case asked = "asked_ms"
    }
}

extension DeliveryTruth {
    /// Returns what must have been delivered until now, in the order the store booked it.
    static func all(of account: Account, in world: World) -> [DeliveryTruth] {
        let purchases = account.bought.map { DeliveryTruth($0, of: account, in: world) }
        let periods = account.begun.flatMap { life in
            life.periods.map { DeliveryTruth($0, of: life, account, in: world) }
        }
        return (purchases + periods).sorted { ($0.booked, $0.transactionID) < ($1.booked, $1.transactionID) }
    }

    init(_ bought: OneTimePurchase, of account: Account, in world: World) {
        customer = bought.buyer.seat.name(of: account.index)
        product = bought.product.identifier(in: world.bundleID)
        kind = bought.product.kind
        quantity = bought.order.quantity.count
        transactionID = account.ids.purchase(bought.ordinal)
        originalTransactionID = transactionID
        appAccountToken = world.token(of: bought.buyer, account)
        booked = bought.bookedAt.milliseconds
        purchase = bought.at.milliseconds
        ownership = "PURCHASED"
        refunded = bought.refund(asOf: account.now)?.milliseconds
        refunds = bought.refunds.filter { $0.at <= account.now }.map { refund in
            Refund(at: refund.at.milliseconds, reversed: refund.reversedAt?.milliseconds)
        }
        finished = bought.finishedAt.flatMap { $0 <= account.now ? $0.milliseconds : nil }
        isListed = bought.isListed(at: account.now)
    }

    init(_ period: Period, of life: Life, _ account: Account, in world: World) {
        let isShared = life.script.isMember
        customer = period.buyer.seat.name(of: account.index)
        product = period.product.identifier(in: world.bundleID)
        kind = .subscription
        quantity = 1
        transactionID = life.ids.transactionID(of: period.ordinal)
        originalTransactionID = life.ids.originalTransactionID
        webOrderLineItemID = isShared ? nil : life.ids.webOrderLineItemID(of: period.ordinal)
        appAccountToken = isShared ? nil : world.token(of: period.buyer, account)
        booked = period.bookedAt.milliseconds
        purchase = period.purchase.milliseconds
        expires = period.expires.milliseconds
        ownership = life.script.ownership
        replaced = period.cancellations.last { $0.isUpgrade }?.at.milliseconds
        refunded = period.cancellation.flatMap { $0.isUpgrade ? nil : $0.at.milliseconds }
        refunds = period.cancellations.filter { !$0.isUpgrade }.map { refund in
            Refund(at: refund.at.milliseconds, reversed: refund.undoneAt?.milliseconds)
        }
        isListed = period.ordinal >= life.periods.count - AnswerBody.rowsMax
    }
}

extension PendingTruth {
    init(_ pending: PendingPurchase, of account: Account, in world: World) {
        pendingID = pending.id
        customer = pending.order.buyer.seat.name(of: account.index)
        product = pending.order.product.identifier(in: world.bundleID)
        quantity = pending.order.quantity.count
        appAccountToken = world.token(of: pending.order.buyer, account)
        asked = pending.askedAt.milliseconds
    }
}
