import Ledger
import Logging
import Subscriptions

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
            "answers": "\(answers)", "equal": "\(equal)", "events": "\(events.count)",
            "rejected": "\(outcomes.count { $0 == .rejected })",
            "indeterminate": "\(outcomes.count { $0 == .indeterminate })", "failed": "\(answers - receipts)",
            "elapsed_ms": "\(Int(elapsed.seconds * 1_000))",
        ]
    }

    /// What it changed. Receipts that hold the same subscription tell of the same change, which is one.
    var events: [Event] {
        struct Told: Hashable {
            let subscription: OriginalTransactionID?
            let environment: StoreEnvironment?
            let event: Event
        }
        let told = settled.flatMap { receipt in
            receipt.subscriptions.flatMap { subscription in
                subscription.events.map {
                    Told(subscription: subscription.id, environment: subscription.environment, event: $0)
                }
            } + receipt.purchaseEvents.map { Told(subscription: nil, environment: nil, event: $0) }
        }
        return Set(told).map(\.event)
    }

    /// Sentences about answers that said nothing of their receipt.
    var troubles: [String] { settled.filter { $0.outcome == .indeterminate }.map { $0.reason ?? "no answer" } }
}
