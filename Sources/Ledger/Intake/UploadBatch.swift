import Crypto
import Postgres
import Subscriptions

/// Uploads prepared for storing, before any lock is taken: each receipt and each customer once, in the lock order of
/// all writers, so that writers do not deadlock.
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
    /// The receipt key of each upload.
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
        customerKeys = uploads.map { upload in
            upload.customer.map { Key(appID: upload.appID, bytes: Array($0.utf8)) }
        }
        receipts = Self.eachOnce(receiptKeys)
        customers = Self.eachOnce(customerKeys)
    }

    private static func eachOnce(_ keys: [Key?]) -> [(key: Key, place: Int)] {
        var places: [Key: Int] = [:]
        for (place, key) in keys.enumerated() {
            if let key, places[key] == nil { places[key] = place }
        }
        return places.sorted { $0.key < $1.key }.map { (key: $0.key, place: $0.value) }
    }
}

extension Upload {
    /// The SHA-256 digest of what was uploaded, equal in two uploads of one receipt or of one transaction: each text that
    /// Apple signs about a transaction has other bytes.
    fileprivate var digest: [UInt8] {
        let subject =
            transactionID.map { Array("\(form.rawValue)\u{0}\(environment?.rawValue ?? "")\u{0}\($0)".utf8) } ?? receipt
        return subject.withUnsafeBytes { bytes in
            var hash = SHA256()
            hash.update(bufferPointer: bytes)
            return Array(hash.finalize())
        }
    }
}
