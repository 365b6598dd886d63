import Ledger
import Subscriptions

/// What one run of `worker --once` came to.
public struct OnceReport: Sendable {
    /// Receipts Apple was asked about.
    public let asked: Int
    /// Receipts that were due when the run began and are still to be asked about.
    public let left: Int
    /// One sentence for each cause of what is left.
    public let why: [String]
}

extension Worker {
    /// Checks what was due when it began, then returns; at most `maxSeconds`, then it finishes what it claimed.
    public func runOnce(maxSeconds: Int?) async throws -> OnceReport {
        let ledger = tracker.ledger
        try await ledger.requireMigrated()
        try await ledger.addObservationMonths()
        let worker = try await ledger.startWorker(host: ProcessIdentity.host, process: ProcessIdentity.number)
        let begin = try await ledger.now()
        let clock = ContinuousClock()
        let end = maxSeconds.map { clock.now.advanced(by: .seconds($0)) }
        var (asked, troubled) = (0, [String]())
        while !Task.isCancelled, end.map({ clock.now < $0 }) ?? true {
            let batch = try await tracker.checkDue(as: worker, dueBy: begin)
            asked += batch.settled.count
            troubled += batch.settled.filter { $0.outcome == .indeterminate }.compactMap(\.reason)
            if batch.settled.isEmpty {
                let waiting = try await ledger.due(limit: 1, by: begin)
                guard !waiting.isEmpty else { break }
                try await Task.sleep(for: .milliseconds(200))
            }
        }
        try await tracker.endHolds()
        try await ledger.sequenceFeed()
        try await ledger.beat(worker, stopped: true)
        let overdue = try await ledger.overdue(by: begin)
        let trouble = Set(troubled).sorted().prefix(5)
        return OnceReport(asked: asked, left: overdue.receipts + troubled.count, why: overdue.why + trouble)
    }
}
