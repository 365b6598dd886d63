import Ledger

/// What settling a batch came to.
struct CheckedBatch: Sendable {
    /// Receipts whose answer was committed.
    var receipts = 0
    /// Answers that were read in full; the others said what the last one said.
    var settled: [Settled] = []

    /// Sentences about answers that said nothing of their receipt.
    var troubles: [String] { settled.filter { $0.outcome == .indeterminate }.map { $0.reason ?? "no answer" } }
}
