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
    /// What the device sends.
    package var subject: Subject
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

    /// What a device sends, as it comes.
    package enum Subject: Sendable, Hashable {
        /// A receipt in base64 in any form, not yet normalised.
        case receipt(String)
        /// A signed transaction of StoreKit 2 in compact form, not yet verified.
        case signedTransaction(String)
        /// The id of a transaction.
        case transactionID(String)

        /// Chooses the only subject that is given; nil for none and for several.
        package init?(receipt: String?, signedTransaction: String?, transactionID: String?) {
            switch (receipt, signedTransaction, transactionID) {
            case (let receipt?, nil, nil): self = .receipt(receipt)
            case (nil, let text?, nil): self = .signedTransaction(text)
            case (nil, nil, let id?): self = .transactionID(id)
            default: return nil
            }
        }
    }

    /// Creates a submission of a receipt.
    package init(
        bundleID: BundleID, customer: String?, receipt: String, imported: Bool = false, order: OrderReference? = nil,
        storefront: String? = nil, priceMilliunits: Int64? = nil, currency: String? = nil, expiresAt: Instant? = nil,
        provisional: Provisional? = nil
    ) {
        self.init(
            bundleID: bundleID, customer: customer, subject: .receipt(receipt), imported: imported, order: order,
            storefront: storefront, priceMilliunits: priceMilliunits, currency: currency, expiresAt: expiresAt,
            provisional: provisional)
    }

    /// Creates a submission.
    package init(
        bundleID: BundleID, customer: String?, subject: Subject, imported: Bool = false, order: OrderReference? = nil,
        storefront: String? = nil, priceMilliunits: Int64? = nil, currency: String? = nil, expiresAt: Instant? = nil,
        provisional: Provisional? = nil
    ) {
        self.bundleID = bundleID
        self.customer = customer
        self.order = order
        self.subject = subject
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
    /// The receipt is stored and waits for a check; `reason` says why it was not checked yet. `heldSeconds`: for how
    /// long it cannot be asked about; nil where nothing is in the way.
    case pending(ReceiptID, reason: String, heldSeconds: Int?)
}
