import Postgres
import SQL
import Subscriptions

/// How many customers have something only by the operator's word, and for how long.
package struct Promises: Sendable, Hashable {
    /// More receipts than this are not counted, so that asking stays cheap while millions wait.
    package static let countedMax: Int64 = 100_000

    /// Receipts that wait for Apple's first answer and have a promise that runs; at most `countedMax`.
    package let receipts: Int64
    /// When the last promise ends at the latest; nil when none runs.
    package let until: Instant?

    /// Whether there may be more of them.
    package var isMore: Bool { receipts >= Self.countedMax }
}

extension SubscriptionLedger {
    /// What customers have by the operator's word alone, as `basis: provisional` tells of each.
    package func promises() async throws -> Promises {
        let rows = try await query(Queries.statusPromises, [.int4(Int32(clamping: Promises.countedMax))])
        guard let row = rows.first else { return Promises(receipts: 0, until: nil) }
        return Promises(receipts: try row.int8("receipts"), until: try row.instantIfPresent("until"))
    }
}
