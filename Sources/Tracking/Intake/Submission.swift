import Ledger
import Subscriptions

/// A receipt as somebody sends it: base64 in whatever shape it arrived.
package struct Submission: Sendable {
    /// The app it is for.
    package var bundleID: BundleID
    /// The operator's own id of the customer.
    package var customer: String
    /// The receipt as sent, not yet normalised.
    package var receipt: String
    /// Whether it comes from an import, which never takes a live subscription from its owner.
    package var imported: Bool
    /// The storefront the device saw.
    package var storefront: String?
    /// The price the device saw, in thousandths of the currency's unit.
    package var priceMilliunits: Int64?
    /// The currency of that price.
    package var currency: String?
    /// When it runs out as far as the sender knows; decides only how soon Apple is asked about an import.
    package var expiresAt: Instant?
    /// What the customer has until Apple is asked, by the operator's word.
    package var provisional: Provisional?

    /// A submission.
    package init(
        bundleID: BundleID, customer: String, receipt: String, imported: Bool = false, storefront: String? = nil,
        priceMilliunits: Int64? = nil, currency: String? = nil, expiresAt: Instant? = nil,
        provisional: Provisional? = nil
    ) {
        self.bundleID = bundleID
        self.customer = customer
        self.receipt = receipt
        self.imported = imported
        self.storefront = storefront
        self.priceMilliunits = priceMilliunits
        self.currency = currency
        self.expiresAt = expiresAt
        self.provisional = provisional
    }
}

/// What became of a submission.
package enum SubmissionAnswer: Sendable {
    /// Apple was asked and the answer is settled, for the customer as they are called now.
    case settled(Settled, customer: String)
    /// The receipt is stored and will be asked about; the reason says why not yet.
    case pending(ReceiptID, reason: String)
}
