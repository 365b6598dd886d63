import Ledger
import Subscriptions

/// What one batch came to.
struct CheckedBatch: Sendable {
    /// Every receipt that was asked about.
    let settled: [Settled]

    /// Answers that said nothing about their receipt.
    var troubled: Int { settled.count { $0.outcome == .indeterminate } }
}
