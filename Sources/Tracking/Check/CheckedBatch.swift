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

    /// Creates the result of a settlement.
    /// - Parameters:
    ///   - receipts: How many answers were committed.
    ///   - settled: The answers that were read in full.
    ///   - answers: All answers of the batch.
    init(receipts: Int, settled: [Settled], of answers: [Checked]) {
        self.receipts = receipts
        self.settled = settled
        for answer in answers where answer.answer.calls == 0 {
            unasked[answer.claim.receiptID] = answer.answer.failure ?? "Apple was not asked."
        }
    }

    /// The changes. Receipts with the same subscription report the same change, which counts once.
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
