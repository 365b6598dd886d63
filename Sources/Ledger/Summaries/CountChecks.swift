import Postgres
import SQL

/// Apple's answers about an app since the last count.
package struct AnswerCount: Sendable, Hashable {
    /// Verified answers.
    package var verified: Int64 = 0
    /// Refusals.
    package var rejected: Int64 = 0
    /// Checks without a usable answer.
    package var failed: Int64 = 0

    /// Creates a count of no answers.
    package init() {}
}

extension LedgerSettlements {
    /// Adds answers to the counts of the current hour, per app.
    package func addChecks(_ counts: [Int32: AnswerCount]) async throws {
        guard !counts.isEmpty else { return }
        let sorted = counts.sorted { $0.key < $1.key }
        _ = try await write(
            Queries.addChecks,
            [
                .int4s(sorted.map(\.key)), .int8s(sorted.map(\.value.verified)), .int8s(sorted.map(\.value.rejected)),
                .int8s(sorted.map(\.value.failed)),
            ])
    }
}
