import Postgres
import SQL

/// Apple's answers about an app, since they were counted last.
public struct AnswerCount: Sendable, Hashable {
    /// Verified answers.
    public var verified: Int64 = 0
    /// Refusals.
    public var rejected: Int64 = 0
    /// Checks without a usable answer.
    public var failed: Int64 = 0

    /// None.
    public init() {}
}

extension SubscriptionLedger {
    /// Adds answers to the current hour's, per app.
    public func addChecks(_ counts: [Int32: AnswerCount]) async throws {
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
