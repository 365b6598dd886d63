import Postgres
import SQL

extension LedgerFeed {
    /// The number of waits for a sequencer at work elsewhere, and the milliseconds of each.
    private static let busyTriesMax = 5
    private static let busyMilliseconds = 10

    /// Assigns committed events their positions in the feed, at most `limit`; returns how many it placed.
    ///
    /// Positions have no gaps, start at 1 and follow each subscription's order. One sequencer works at a time; another
    /// caller places nothing and returns 0.
    @discardableResult
    package func sequence(limit: Int = 10_000) async throws -> Int {
        try await placed(limit: limit) ?? 0
    }

    /// Assigns a position to every event that is committed by now.
    ///
    /// Returns false when another sequencer stayed at work; it may have started too early to see the events.
    @discardableResult
    package func sequenceAll(limit: Int = 10_000) async throws -> Bool {
        var tries = 0
        while tries < Self.busyTriesMax {
            switch try await placed(limit: limit) {
            case nil:
                tries += 1
                try await Task.sleep(for: .milliseconds(Self.busyMilliseconds))
            case .some(let placed) where placed < limit: return true
            case .some: continue
            }
        }
        return false
    }

    /// Places at most `limit` events and returns how many; nil when another sequencer is at work.
    private func placed(limit: Int) async throws -> Int? {
        try await database.transaction { transaction in
            guard try transaction.query(Queries.lockFeed).first?.bool("locked") == true else { return nil }
            return try transaction.execute(Statement(Queries.sequenceFeed), [.int4(Int32(clamping: limit))])
        }
    }
}
