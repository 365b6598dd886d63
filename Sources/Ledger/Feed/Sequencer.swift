import Postgres
import SQL

extension SubscriptionLedger {
    /// Gives committed events their positions in the feed, at most `limit`; returns how many it placed.
    ///
    /// Positions are dense from 1 and follow each subscription's order. One sequencer works at a time; another caller
    /// places nothing and returns 0.
    @discardableResult
    public func sequenceFeed(limit: Int = 10_000) async throws -> Int {
        try await database.transaction { transaction in
            guard try transaction.query(Queries.lockFeed).first?.bool("locked") == true else { return 0 }
            return try transaction.execute(Statement(Queries.sequenceFeed), [.int4(Int32(clamping: limit))])
        }
    }
}
