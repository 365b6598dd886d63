import Postgres
import SQL
import Subscriptions

/// How many receipts have a promise by the operator's word alone, and until when.
package struct Promises: Sendable, Hashable {
    /// The most receipts that are counted, so that the count stays cheap while millions wait.
    package static let countedMax: Int64 = 100_000

    /// Receipts that wait for Apple's first answer and have a current promise; at most `countedMax`.
    package let receipts: Int64
    /// When the last promise ends at the latest; nil when there is no current promise.
    package let until: Instant?

    /// Whether there may be more receipts than `receipts`.
    package var isMore: Bool { receipts >= Self.countedMax }
}

extension SubscriptionLedger {
    /// Returns the promises by the operator's word alone, shown per customer as `basis: provisional`.
    package func promises() async throws -> Promises {
        let rows = try await query(Queries.statusPromises, [.int4(Int32(clamping: Promises.countedMax))])
        guard let row = rows.first else { return Promises(receipts: 0, until: nil) }
        return Promises(receipts: try row.int8("receipts"), until: try row.instantIfPresent("until"))
    }
}
