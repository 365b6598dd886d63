import Crypto
import Foundation
import Postgres
import SQL
import Subscriptions

/// The key of a stored receipt.
public struct ReceiptID: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The number.
    public let number: Int64

    /// A receipt's key from its number.
    public init(_ number: Int64) {
        self.number = number
    }

    /// The number in digits.
    public var description: String { String(number) }

    /// Orders by number.
    public static func < (left: ReceiptID, right: ReceiptID) -> Bool { left.number < right.number }
}

/// A receipt as a customer's device, or an import, brought it.
public struct Upload: Sendable {
    /// The app it is for.
    public var appID: Int32
    /// The operator's own id of the customer, 1 to 255 characters.
    public var customer: String
    /// The receipt's bytes, after base64 was normalised and decoded.
    public var receipt: [UInt8]
    /// Whether it comes from an import, which never takes a live subscription from its owner.
    public var imported: Bool
    /// The storefront the device saw.
    public var storefront: String?
    /// The price the device saw, in thousandths of the currency's unit.
    public var priceMilliunits: Int64?
    /// The currency of that price.
    public var currency: String?

    /// An upload.
    public init(
        appID: Int32, customer: String, receipt: [UInt8], imported: Bool, storefront: String? = nil,
        priceMilliunits: Int64? = nil, currency: String? = nil
    ) {
        self.appID = appID
        self.customer = customer
        self.receipt = receipt
        self.imported = imported
        self.storefront = storefront
        self.priceMilliunits = priceMilliunits
        self.currency = currency
    }
}

/// Where an upload went.
public struct StoredUpload: Sendable, Hashable {
    /// The receipt's key.
    public let receiptID: ReceiptID
    /// Whether the receipt was not known before.
    public let isNew: Bool
}

extension SubscriptionLedger {
    /// Keeps uploads, all or none; a receipt is stored once however often it comes. Answers in the order of `uploads`.
    public func store(_ uploads: [Upload]) async throws -> [StoredUpload] {
        for upload in uploads { try Upload.requireCustomer(upload.customer) }
        guard !uploads.isEmpty else { return [] }
        var attempt = 1
        while true {
            do {
                return try await database.transaction { try Self.store(uploads, in: $0) }
            } catch let error as DatabaseError where error.isSerializationFailure && attempt < 3 {
                attempt += 1
            }
        }
    }

    /// The schedule comes before everything else that a settlement of these receipts may hold, and every step goes
    /// through its rows in one order, so that writers do not cross.
    private static func store(_ uploads: [Upload], in transaction: Transaction) throws -> [StoredUpload] {
        let apps = Parameter.int4s(uploads.map(\.appID))
        let digests = Parameter.byteas(uploads.map(\.digest))
        let fresh = try transaction.query(Queries.insertReceipts, [apps, digests, .byteas(uploads.map(\.receipt))])
        var newReceipts = Set(try fresh.map { try $0.int8("receipt_id") })
        let ids = try transaction.query(Queries.findDigests, [apps, digests]).map { try $0.int8("receipt_id") }
        guard ids.count == uploads.count else {
            throw LedgerError(.mismatch, "A receipt was not stored; run `perennial migrate`.")
        }
        try transaction.query(Queries.lockSchedules, [.int8s(ids)])
        try transaction.query(Queries.insertCustomers, [apps, .texts(uploads.map(\.customer))])
        try transaction.query(Queries.storeUploads, [.int8s(ids), apps] + Upload.columns(uploads))
        return ids.map { StoredUpload(receiptID: ReceiptID($0), isNew: newReceipts.remove($0) != nil) }
    }
}

extension Upload {
    /// Throws unless the text can be a customer's id: 1 to 255 characters, none of them NUL.
    public static func requireCustomer(_ customer: String) throws(LedgerError) {
        guard (1...255).contains(customer.unicodeScalars.count), !customer.unicodeScalars.contains("\0") else {
            throw LedgerError(
                .invalid, "A customer id has 1 to 255 characters; this one has \(customer.unicodeScalars.count).")
        }
    }

    fileprivate var digest: [UInt8] { [UInt8](SHA256.hash(data: Data(receipt))) }

    /// The columns of `store_uploads` that say who and what for.
    fileprivate static func columns(_ uploads: [Upload]) -> [Parameter] {
        [
            .texts(uploads.map(\.customer)), .bools(uploads.map(\.imported)), .texts(uploads.map(\.storefront)),
            .int8s(uploads.map(\.priceMilliunits)), .texts(uploads.map(\.currency)),
        ]
    }
}
