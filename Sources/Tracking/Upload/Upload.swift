import Crypto
import Foundation
package import Subscriptions

/// The key of a stored receipt.
package struct ReceiptID: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let number: Int64

    /// Creates a receipt's key from its number.
    package init(_ number: Int64) { self.number = number }

    /// The number in decimal digits.
    package var description: String { String(number) }

    /// Orders by number.
    package static func < (left: ReceiptID, right: ReceiptID) -> Bool { left.number < right.number }
}

/// The order that a receipt is sent for.
package struct OrderReference: Sendable, Hashable {
    /// The order's id, a UUID in lower case.
    package let id: String
    /// Whether a device proved that the upload is about the order, and so may claim one transaction for its customer.
    package let isProved: Bool
    /// The transaction that the caller names for the order.
    package let transactionID: TransactionID?

    /// Names an order.
    package init(id: String, isProved: Bool, transactionID: TransactionID? = nil) {
        (self.id, self.isProved, self.transactionID) = (id, isProved, transactionID)
    }
}

/// What an upload has a settlement decide: who owns the contents of a receipt, and whether they pay an order.
package struct UploadSender: Sendable, Hashable {
    /// The operator's own id of the customer who uploaded it.
    package var customer: String?
    /// The order that it was sent for.
    package var orderID: String?
}

/// A receipt as the ledger stores it, from a device or an import: its app is known and its bytes are decoded.
package struct Upload: Sendable {
    package var appID: Int32
    /// The operator's own id of the customer, 1 to 255 characters; nil where a device sends a receipt for an order.
    package var customer: String?
    /// A receipt's bytes, decoded from normalised base64; a signed transaction in compact form; or an id.
    package var receipt: [UInt8]
    /// Whether it comes from an import, which never takes a live subscription from its owner.
    package var imported: Bool
    /// The order that the receipt is sent for.
    package var order: OrderReference?
    /// The storefront the device saw.
    package var storefront: String?
    /// The price the device saw, in thousandths of the currency's unit.
    package var priceMilliunits: Int64?
    /// The currency of that price.
    package var currency: String?
    /// The expiry according to a source other than Apple; it decides only how soon Apple is asked about an import.
    package var expiresAt: Instant?
    /// The customer's provisional product until Apple is asked.
    package var provisional: Provisional?
    /// What the device sent.
    package var form = SubmittedForm.receipt
    /// The id of the transaction; nil for a receipt.
    package var transactionID: TransactionID?
    /// The environment of a signed transaction, whose signature was verified.
    package var environment: StoreEnvironment?
    /// Whether the receipt says of itself that it is of the sandbox; it decides only whose pause its check waits for.
    package var saysSandbox = false

    private static let customerCharactersMax = 255

    /// Throws `invalid` unless the text can be a customer id: 1 to 255 characters, none of them NUL.
    package static func requireValidCustomerID(_ customer: String) throws(LedgerError) {
        try ManualDecision.require(customer, "A customer id", charactersMax: customerCharactersMax)
    }
}

/// The operator's statement that a customer has what the catalog grants for a product until Apple is asked.
package struct Provisional: Sendable, Hashable {
    /// The maximum duration of the access, counted from the first statement, in days.
    package static let daysMax: Int64 = 90

    package var productID: ProductID
    /// The end if Apple has not been asked by then; the ledger limits it to `daysMax`.
    package var until: Instant
    /// Apple's environment that the receipt appears to come from.
    package var environment: StoreEnvironment

    package init(productID: ProductID, until: Instant, environment: StoreEnvironment = .production) {
        (self.productID, self.until, self.environment) = (productID, until, environment)
    }
}

/// The result of storing an upload.
package struct StoredUpload: Sendable, Hashable {
    /// The receipt's key.
    package let receiptID: ReceiptID
    /// Whether the receipt is new.
    package let isNew: Bool
    /// The customer that the upload named, or the one that name was merged into; nil where it named none.
    package let customer: String?
}

/// Uploads prepared for storing, before any lock is taken: each receipt and customer once, in the order of all writers.
struct UploadBatch: Sendable {
    /// The identity of a receipt or a customer: the app, and bytes compared as bytes.
    struct Key: Hashable, Sendable, Comparable {
        let appID: Int32
        let bytes: [UInt8]

        static func < (left: Key, right: Key) -> Bool {
            left.appID == right.appID ? left.bytes.lexicographicallyPrecedes(right.bytes) : left.appID < right.appID
        }
    }

    let uploads: [Upload]
    let receiptKeys: [Key]
    /// The customer key of each upload; nil where it names none.
    let customerKeys: [Key?]
    /// Each receipt once, in order, with the index of an upload that contains it.
    let receipts: [(key: Key, place: Int)]
    /// Each customer once, in order, with the index of one of the customer's uploads.
    let customers: [(key: Key, place: Int)]

    init(_ uploads: [Upload]) {
        self.uploads = uploads
        receiptKeys = uploads.map { Key(appID: $0.appID, bytes: $0.digest) }
        customerKeys = uploads.map { upload in upload.customer.map { Key(appID: upload.appID, bytes: Array($0.utf8)) } }
        receipts = Self.eachOnce(receiptKeys)
        customers = Self.eachOnce(customerKeys)
    }

    private static func eachOnce(_ keys: [Key?]) -> [(key: Key, place: Int)] {
        var places: [Key: Int] = [:]
        for case (let place, let key?) in keys.enumerated() where places[key] == nil { places[key] = place }
        return places.sorted { $0.key < $1.key }.map { (key: $0.key, place: $0.value) }
    }
}

extension Upload {
    /// Creates the upload of a receipt of which nothing else is known.
    package init(appID: Int32, customer: String?, receipt: [UInt8], imported: Bool) {
        self.init(appID: appID, customer: customer, receipt: receipt, imported: imported, order: nil)
    }

    /// The SHA-256 digest of a receipt; of a transaction its id's, because each text that Apple signs about it differs.
    fileprivate var digest: [UInt8] {
        let subject =
            transactionID.map { Array("\(form.rawValue)\u{0}\(environment?.rawValue ?? "")\u{0}\($0)".utf8) } ?? receipt
        return Array(SHA256.hash(data: subject))
    }
}
