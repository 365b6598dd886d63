package import Ledger
package import Subscriptions

/// A receipt as a caller sends it, by HTTP, by command or in an import. Nothing of it is checked yet; the ledger stores
/// it as an `Upload`.
package struct Submission: Sendable {
    /// The app of the receipt.
    package var bundleID: BundleID
    /// The operator's own id of the customer; nil where a device sends the receipt for an order.
    package var customer: String?
    /// The order that the receipt is sent for.
    package var order: OrderReference?
    /// The receipt in base64 in any form, not yet normalised.
    package var receipt: String
    /// Whether it comes from an import, which never takes a live subscription from its owner.
    package var imported: Bool
    /// The storefront the device saw.
    package var storefront: String?
    /// The price the device saw, in thousandths of the currency's unit.
    package var priceMilliunits: Int64?
    /// The currency of that price.
    package var currency: String?
    /// The expiry as far as the sender knows it; decides only how soon Apple is asked about an import.
    package var expiresAt: Instant?
    /// What the operator grants the customer until Apple is asked.
    package var provisional: Provisional?

    /// Creates a submission.
    package init(
        bundleID: BundleID, customer: String?, receipt: String, imported: Bool = false, order: OrderReference? = nil,
        storefront: String? = nil, priceMilliunits: Int64? = nil, currency: String? = nil, expiresAt: Instant? = nil,
        provisional: Provisional? = nil
    ) {
        self.bundleID = bundleID
        self.customer = customer
        self.order = order
        self.receipt = receipt
        self.imported = imported
        self.storefront = storefront
        self.priceMilliunits = priceMilliunits
        self.currency = currency
        self.expiresAt = expiresAt
        self.provisional = provisional
    }
}

/// The result of a submission.
package enum SubmissionAnswer: Sendable {
    /// Apple was asked and the answer is settled, for the customer under their present id, if the submission named one.
    case settled(Settled, customer: String?)
    /// The receipt is stored and waits for a check; `reason` says why it was not checked yet.
    case pending(ReceiptID, reason: String)
}
