import Synchronization

@testable import Subscriptions
@testable import Tracking

/// What Apple says of one subscription of monthly periods, 30 days each, one after the other.
struct Answer: Sendable {
    var subscription: OriginalTransactionID = "1000"
    var product: ProductID = "monthly"
    /// When the first period starts.
    var from: Instant
    /// How many follow each other.
    var periods = 1
    /// Apple's clock.
    var asOf: Instant
    var willRenew: Bool? = true
    var intent: String?
    var inRetry: Bool?
    var graceUntil: Instant?
    var token: String?
    /// The refunded period, counted from 0, and when.
    var refunded: (period: Int, at: Instant)?
    var createdAt: Instant?
    var environment: StoreEnvironment = .production
    var trial = false
    /// Whether a family member shares it.
    var shared = false
    /// What tells the line items of this answer's periods from those of another answer's.
    var line = "w"

    init(from: Instant, periods: Int = 1, asOf: Instant) {
        self.from = from
        self.periods = periods
        self.asOf = asOf
    }

    /// A copy with some of it said otherwise.
    func but(_ change: (inout Answer) -> Void) -> Answer {
        var copy = self
        change(&copy)
        return copy
    }

    var rows: [TransactionRow] {
        (0..<periods).map { index in
            let start = from + .days(Int64(30 * index))
            let cancelled = refunded.flatMap { $0.period == index ? $0.at : nil }
            var row = TransactionRow(
                path: "latest_receipt_info[\(index)]", source: .latestReceiptInfo, asOf: asOf,
                transactionID: TransactionID("\(line)\(subscription)-\(index)"), originalTransactionID: subscription,
                webOrderLineItemID: WebOrderLineItemID("\(line)\(subscription)-\(index)"), productID: product,
                purchasedAt: start, expiresAt: start + .days(30), cancelledAt: cancelled,
                cancellationReason: cancelled.map { _ in "1" })
            (row.originalPurchasedAt, row.isTrial, row.groupID) = (from, trial && index == 0, "group")
            (row.ownership, row.appAccountToken) = (shared ? .familyShared : .purchased, token)
            return row
        }
    }

    var evidence: Evidence {
        Evidence(
            environment: environment, bundleID: "com.example.app", asOf: asOf, receiptCreatedAt: createdAt,
            transactions: rows,
            renewals: [
                RenewalRow(
                    path: "pending_renewal_info[0]", asOf: asOf, originalTransactionID: subscription,
                    renewal: Renewal(
                        productID: product, renewsToProductID: product, willRenew: willRenew, expirationIntent: intent,
                        inBillingRetry: inRetry, graceExpiresAt: graceUntil))
            ])
    }

    var finding: Finding { .verified(evidence) }
}

/// Several subscriptions in one answer.
func together(_ answers: [Answer]) -> Finding {
    var evidence = answers[0].evidence
    for answer in answers.dropFirst() {
        evidence.transactions += answer.evidence.transactions
        evidence.renewals += answer.evidence.renewals
    }
    return .verified(evidence)
}

/// An answer with one one-time purchase.
func purchase(
    _ id: String, product: ProductID = "coins", quantity: Int = 1, at: Instant, asOf: Instant,
    refundedAt: Instant? = nil
) -> Finding {
    .verified(
        Evidence(
            environment: .production, bundleID: "com.example.app", asOf: asOf,
            transactions: [
                TransactionRow(
                    path: "latest_receipt_info[0]", source: .latestReceiptInfo, asOf: asOf,
                    transactionID: TransactionID(id), originalTransactionID: OriginalTransactionID(id),
                    productID: product, quantity: quantity, purchasedAt: at, cancelledAt: refundedAt)
            ]))
}

/// Apple does not vouch for a receipt.
func rejected(_ kind: Refusal.Kind = .notAuthentic, status: Int = 21003) -> Finding {
    .rejected(Refusal(reason: "Apple refused (\(status)).", status: status, retryable: true, kind: kind))
}

/// Apple said nothing usable.
let outage = Finding.indeterminate(CheckFailure(reason: "Apple did not answer.", status: nil, retryable: true))

/// Answers under the words that stand for their bodies.
final class AnswerLibrary: Sendable {
    private let answers = Mutex<[[UInt8]: Evidence]>([:])

    /// Returns the body that stands for an answer from now on.
    func keep(_ evidence: Evidence) -> [UInt8] {
        answers.withLock { answers in
            let body = Array("answer \(answers.count)".utf8)
            answers[body] = evidence
            return body
        }
    }

    var reading: EvidenceReader {
        EvidenceReader(answer: { [self] kept in answers.withLock { $0[kept.body] } }, notification: { _ in nil })
    }
}

extension TestLedger {
    /// What a rebuild from the answers of a library would change.
    func differences(from library: AnswerLibrary) async throws -> [String] {
        var differences: [String] = []
        var place: RebuildPlace? = .start
        while let here = place {
            let batch = try await ledger.operations.rebuild(
                from: here, limit: 10, RebuildScope(), correcting: false, reading: library.reading)
            differences += batch.differences.map { "\($0)" }
            place = batch.next
        }
        return differences
    }
}
