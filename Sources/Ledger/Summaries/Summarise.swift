import Postgres
import SQL

/// What one step of the summaries did.
package struct SummaryStep: Sendable, Hashable {
    /// Subscriptions whose shares were computed anew.
    package let subscriptions: Int
    /// Whether more may be waiting: the feed goes on, or the first round through all is not over.
    package let isBehind: Bool
}

extension SubscriptionLedger {
    /// Events that one step reads, at most.
    static let summaryEventsMax = 2_000
    /// Subscriptions that one step looks at anew in the first round, and in later ones.
    static let summaryFirstRoundMax: Int32 = 2_000
    static let summaryRoundMax: Int32 = 200
    /// Subscriptions that one step looks at anew because they were written without an event.
    static let summaryWrittenMax: Int32 = 2_000

    /// Takes the next events of the feed into each day's summaries and into the rows that reports read, and a few
    /// subscriptions of the round through all, which finds what no event tells. Returns nil while another process does it.
    ///
    /// What a subscription added before is taken out and what its history says now is put in, for every day it touches: a
    /// late event rewrites the past, and the same step twice changes nothing. Settlements never come here. `findsWritten`
    /// looks through all subscriptions for those that were written since without an event: a second for each million.
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
                // The mark comes first: the upload that says a price meanwhile waits for it, and takes it away again.
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
