import Postgres
import SQL
package import Subscriptions

/// A transaction whose consumption Apple asked about without an answer since.
package struct LateConsumption: Sendable, Hashable {
    /// Hours after which an answer is late: Apple waits for twelve.
    package static let lateHours: Int32 = 10
    /// Days after which it is not mentioned any more.
    package static let daysMax: Int32 = 7
    /// The most that a status lists.
    package static let listedMax: Int32 = 100

    /// The app.
    package let bundleID: BundleID
    /// Where.
    package let environment: StoreEnvironment
    /// The transaction.
    package let transactionID: TransactionID
    /// When Apple asked first.
    package let askedAt: Instant
}

extension LedgerOperations {
    /// Returns the transactions whose consumption Apple asked about without an answer, the longest waiting first.
    func lateConsumption() async throws -> [LateConsumption] {
        let limits = [LateConsumption.lateHours, LateConsumption.daysMax, LateConsumption.listedMax]
        return try await query(Queries.statusConsumption, limits.map { .int4($0) }).map { row in
            LateConsumption(
                bundleID: BundleID(try row.text("bundle_id")), environment: try row.word("environment"),
                transactionID: TransactionID(try row.text("transaction_id")), askedAt: try row.instant("asked_at"))
        }
    }
}
