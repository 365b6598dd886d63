import Ledger
import Subscriptions

/// What settling a batch came to.
struct CheckedBatch: Sendable {
    /// Receipts whose answer was committed.
    var receipts = 0
    /// Answers that were read in full; the others said what the last one said.
    var settled: [Settled] = []
    /// Receipts about which Apple could not be asked, and why, such as where an app's secret cannot be opened here.
    var unasked: [ReceiptID: String] = [:]

    /// What settling came to.
    /// - Parameters:
    ///   - receipts: How many answers were committed.
    ///   - settled: The answers that were read in full.
    ///   - answers: All answers of the batch.
    init(receipts: Int, settled: [Settled], of answers: [Checked]) {
        self.receipts = receipts
        self.settled = settled
        for answer in answers where answer.answer.calls == 0 {
            unasked[answer.claim.receiptID] = answer.answer.trouble ?? "Apple was not asked."
        }
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

    /// Receipts that Apple was asked about and said nothing of, with its reason.
    var unanswered: [(receipt: ReceiptID, reason: String)] {
        settled.filter { $0.outcome == .indeterminate && unasked[$0.receiptID] == nil }
            .map { ($0.receiptID, $0.reason ?? "no answer") }
    }
}

extension Settled {
    /// Whether it changed anything.
    var hasEvents: Bool { !purchaseEvents.isEmpty || subscriptions.contains { !$0.events.isEmpty } }
}
