import Postgres
import SQL

/// The result of one step of the summaries.
package struct SummaryStep: Sendable, Hashable {
    /// Subscriptions whose shares were computed again.
    package let subscriptions: Int
    /// Whether more may be waiting: the feed goes on, or the first round through all subscriptions is not over.
    package let isBehind: Bool
}

extension LedgerOperations {
    /// The most events that one step reads.
    static let summaryEventsMax = 2_000
    /// The most subscriptions that one step computes again, in the first round and in later ones.
    static let summaryFirstRoundMax: Int32 = 2_000
    static let summaryRoundMax: Int32 = 200
    /// The most subscriptions that one step computes again because they were written without an event.
    static let summaryWrittenMax: Int32 = 2_000

    /// Takes the next events of the feed into each day's summaries and into the rows for reports, and computes a few
    /// subscriptions again in a round through all, which finds changes without an event. Returns nil while another
    /// process does it.
    ///
    /// For every day that a subscription touches, it removes what the subscription added before and adds what its
    /// history says now. A late event therefore rewrites the past, and the same step twice changes nothing. Settlements
    /// never run it. `findsWritten` searches all subscriptions for those written since without an event: a second for
    /// each million.
    @discardableResult
    package func summarise(isFirstRound: Bool = false, findsWritten: Bool = false) async throws -> SummaryStep? {
        let roundMax = isFirstRound ? Self.summaryFirstRoundMax : Self.summaryRoundMax
        let writtenMax = findsWritten ? Self.summaryWrittenMax : 0
        return try await database.transaction { transaction in
            guard try transaction.query(Queries.lockSummaries).first?.bool("locked") == true else { return nil }
            let found = try transaction.query(
                Queries.findUnsummarised, [.int4(Int32(Self.summaryEventsMax)), .int4(roundMax), .int4(writtenMax)])
            guard let row = found.first else { return nil }
            let subscriptions = try row.int8s("subscriptions")
            if !subscriptions.isEmpty {
                // The mark comes first: an upload that reports a price meanwhile waits for the mark, and removes it
                // again.
                try transaction.query(Queries.markSummarised, [.int8s(subscriptions)])
                try transaction.query(Queries.forgetSummaryRows, [.int8s(subscriptions)])
                try transaction.query(Queries.addSummaryRows, [.int8s(subscriptions)])
                try transaction.query(Queries.forgetShares, [.int8s(subscriptions)])
                try transaction.query(Queries.addShares, [.int8s(subscriptions)])
            }
            try transaction.query(
                Queries.moveSummaries,
                [
                    .int8(try row.int8("position")), .int8(try row.int8("round_at")), .int8(try row.int8("rounds")),
                    .text(try row.text("price_mark")),
                ])
            return SummaryStep(
                subscriptions: subscriptions.count,
                isBehind: try row.int8("rounds") == 0 || subscriptions.count >= Self.summaryEventsMax)
        }
    }
}
