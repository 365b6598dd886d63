import Postgres
import Subscriptions

/// The one-time purchases in an answer, and their versions: while these stay the same, an equal answer says nothing
/// new.
struct AnsweredPurchases: Sendable, Hashable {
    /// The row numbers, in ascending order.
    let rowIDs: [Int64]
    /// The sum of their versions, which only increase; nil without purchases.
    let versions: Int64?

    init() {
        (rowIDs, versions) = ([], nil)
    }

    init(_ drafts: [PurchaseDraft]) {
        rowIDs = drafts.map(\.rowID).sorted()
        versions = drafts.isEmpty ? nil : drafts.reduce(0) { $0 + $1.version }
    }

    init(row: Row) throws {
        rowIDs = try row.int8sIfPresent("purchases") ?? []
        versions = try row.int8IfPresent("purchase_versions")
    }

    /// The row numbers separated by commas; nil without purchases.
    var text: String? { rowIDs.isEmpty ? nil : rowIDs.map(String.init).joined(separator: ",") }

    /// Returns the purchases if none of them changed since and none was seen at a later clock; nil otherwise.
    func unchanged(_ known: [Int64: KnownPurchase], asOf: Instant) -> [KnownPurchase]? {
        let purchases = rowIDs.compactMap { known[$0] }
        guard purchases.count == rowIDs.count, purchases.reduce(0, { $0 + $1.version }) == versions ?? 0,
            purchases.allSatisfy({ $0.asOf <= asOf })
        else { return nil }
        return purchases
    }
}

/// The part of a stored one-time purchase that a confirmation needs.
struct KnownPurchase: Sendable {
    let rowID: Int64
    let version: Int64
    let asOf: Instant
    let purchasedAt: Instant
    /// The receipt that polls it.
    let polledBy: Int64?

    init(row: Row) throws {
        rowID = try row.int8("purchase_id")
        polledBy = try row.int8IfPresent("polled_by")
        version = try row.int8("version")
        asOf = try row.instant("as_of")
        purchasedAt = try row.instant("purchased_at")
    }
}
