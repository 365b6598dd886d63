/// What must have been delivered to a customer: one one-time purchase, or one period of a subscription. A purchase stays
/// in the list after it was finished.
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
    /// The product bought.
    package var product: String
    /// What kind of product it is.
    package var kind: DeliveryKind
    /// The number of pieces.
    package var quantity: Int
    /// The server's transaction id.
    package var transactionID: String
    /// Apple's id of the chain; the transaction id for a one-time purchase.
    package var originalTransactionID: String
    /// Absent for one-time purchases and for family members.
    package var webOrderLineItemID: String?
    /// The token in the row.
    package var appAccountToken: String?
    /// When the store first showed it.
    package var booked: Int64
    /// The date of the purchase.
    package var purchase: Int64
    /// The end of a period.
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
    /// The product.
    package var product: String
    /// The number of pieces.
    package var quantity: Int
    /// The token the app passed.
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
