import Ledger
import Logging

/// What settling a batch came to.
struct CheckedBatch: Sendable {
    /// Receipts whose answer was committed.
    var receipts = 0
    /// Answers that were read in full; the others said what the last one said.
    var settled: [Settled] = []

    /// What the log says of the batch: numbers only.
    func line(of answers: Int, equal: Int, elapsed: Duration) -> Logger.Metadata {
        let outcomes = settled.map(\.outcome)
        return [
            "answers": "\(answers)", "equal": "\(equal)", "events": "\(settled.reduce(0) { $0 + $1.events.count })",
            "rejected": "\(outcomes.count { $0 == .rejected })",
            "indeterminate": "\(outcomes.count { $0 == .indeterminate })", "failed": "\(answers - receipts)",
            "elapsed_ms": "\(Int(elapsed.seconds * 1_000))",
        ]
    }

    /// Sentences about answers that said nothing of their receipt.
    var troubles: [String] { settled.filter { $0.outcome == .indeterminate }.map { $0.reason ?? "no answer" } }
}
