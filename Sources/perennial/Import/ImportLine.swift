import Ledger
import Subscriptions
import Tracking

/// One line of an import: `{"app": …, "customer": …, "receipt": …}` and, where known, `storefront`, `price`,
/// `currency`, `product`, `expires` and `provisional_until`. In place of the receipt there may be `signed_transaction` or
/// `transaction_id`.
struct ImportLine: Sendable, Hashable {
    var app: String
    var customer: String
    var receipt: String?
    var signedTransaction: String?
    var transactionID: String?
    var storefront: String?
    /// The price in thousandths of the currency's unit.
    var priceMilliunits: Int64?
    var currency: String?
    var product: String?
    var expiresAt: Instant?
    var provisionalUntil: Instant?

    /// Returns the submission in a line. Throws one sentence about its mistake.
    static func submission(in bytes: UnsafeRawBufferPointer) throws -> Submission {
        try (QuickLine.read(bytes) ?? CarefulLine.read(bytes)).submission
    }

    private var submission: Submission {
        get throws {
            guard !app.isEmpty else { throw Failure("app is empty; give the app's bundle id") }
            guard (priceMilliunits == nil) == (currency == nil) else { throw Failure("price and currency go together") }
            let subject = Submission.Subject(
                receipt: receipt, signedTransaction: signedTransaction, transactionID: transactionID)
            guard let subject else {
                throw Failure("give exactly one of receipt, signed_transaction and transaction_id")
            }
            return Submission(
                bundleID: BundleID(app), customer: customer, subject: subject, imported: true, storefront: storefront,
                priceMilliunits: priceMilliunits, currency: currency, expiresAt: expiresAt,
                provisional: try provisional)
        }
    }

    private var provisional: Provisional? {
        get throws {
            guard let provisionalUntil else { return nil }
            guard let product, !product.isEmpty else {
                throw Failure("provisional_until needs product, which says what the customer has until then")
            }
            return Provisional(productID: ProductID(product), until: provisionalUntil)
        }
    }
}
