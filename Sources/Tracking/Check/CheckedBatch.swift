import AppStore
import Ledger
import Subscriptions

/// The result of settling a batch.
struct CheckedBatch: Sendable {
    /// Receipts whose answer was committed.
    var receipts = 0
    /// Answers that were read in full; the others repeated the previous answer.
    var settled: [Settled] = []
    /// Receipts that Apple could not be asked about, with the reason, such as an app secret that cannot be opened here.
    var unasked: [ReceiptID: String] = [:]

    /// The reasons why answers could not be written. The log has them too.
    var failures: [SettledBatch.Failure] = []

    /// Creates the result of a settlement from all answers of its batch.
    init(_ batch: SettledBatch, of answers: [Checked]) {
        receipts = batch.confirmed.count + batch.settled.count
        settled = batch.settled
        failures = batch.failures
        for answer in answers where answer.answer.calls == 0 {
            unasked[answer.claim.receiptID] = answer.answer.failure ?? "Apple was not asked."
        }
    }

    /// The changes. Receipts with the same subscription report the same change, which counts once.
    var events: [Event] {
        struct Reported: Hashable {
            let subscription: OriginalTransactionID?
            let environment: StoreEnvironment?
            let event: Event
        }
        let reported = settled.flatMap { receipt in
            receipt.subscriptions.flatMap { subscription in
                subscription.events.map {
                    Reported(subscription: subscription.id, environment: subscription.environment, event: $0)
                }
            } + receipt.purchaseEvents.map { Reported(subscription: nil, environment: nil, event: $0) }
        }
        return Set(reported).map(\.event)
    }

    /// Receipts that Apple was asked about but gave no usable answer for, with the reason.
    var unanswered: [(receipt: ReceiptID, reason: String)] {
        settled.filter { $0.outcome == .indeterminate && unasked[$0.receiptID] == nil }
            .map { ($0.receiptID, $0.reason ?? "no answer") }
    }
}

extension Settled {
    /// Whether it changed anything.
    var hasEvents: Bool { !purchaseEvents.isEmpty || subscriptions.contains { !$0.events.isEmpty } }
}
