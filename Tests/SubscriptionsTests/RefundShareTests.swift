import SeededRandom
@testable import Subscriptions
import Testing

@Suite(
    "The share that a text states of a refund goes with the refund of its date, in whatever order texts and answers come"
)
struct RefundShareTests {
    /// What a text states of a refund.
    private struct Text {
        let signedAt: Double
        let refundedAt: Double
        let share: Int

        var row: TransactionRow { RefundShareTests.said(by: nil, on: signedAt, refundedAt: refundedAt, share: share) }
    }

    /// What an answer shows, on its day; only the Server API shows a share.
    private struct Answer {
        let day: Double
        let refundedAt: Double?
        let share: Int?
        let isServer: Bool

        var row: TransactionRow { RefundShareTests.said(by: isServer, on: day, refundedAt: refundedAt, share: share) }
    }

    /// A row of a channel; nil: of a notification.
    private static func said(by isServer: Bool?, on asOf: Double, refundedAt: Double?, share: Int?) -> TransactionRow {
        var said = row("1", 0, 30, asOf: asOf, cancelled: refundedAt)
        switch isServer {
        case nil: (said.path, said.source) = ("notification.signedTransactionInfo", .signedText)
        case true?: (said.path, said.source) = ("history[0].signedTransactions[0]", .signedText)
        case false?: break
        }
        said.revocationPercentage = refundedAt == nil ? nil : share
        return said
    }

    private static func evidence(_ row: TransactionRow) -> SubscriptionEvidence {
        SubscriptionEvidence(originalTransactionID: subscriptionID, asOf: row.asOf, transactions: [row], renewals: [])
    }

    private static func purchase(_ row: TransactionRow) -> PurchaseEvidence {
        var row = row
        row.expiresAt = nil
        let key = PurchaseKey(originalTransactionID: subscriptionID, productID: row.productID)
        return PurchaseEvidence(key: key, asOf: row.asOf, transactions: [row])
    }

    /// A life of one period and one purchase: texts wait until an answer shows what they state.
    private struct Known {
        var subscription: SubscriptionState?
        var bought: PurchaseState?
        var waiting: [Text] = []

        mutating func hear(_ answer: Answer) {
            subscription =
                reconcile(subscription, with: RefundShareTests.evidence(answer.row), policy: standardPolicy).state
            bought = reconcilePurchase(bought, with: RefundShareTests.purchase(answer.row))?.state
            for text in waiting {
                if let state = subscription, state.shows(RefundShareTests.evidence(text.row)),
                    let facts = state.facts.addingDetails(of: text.row)
                {
                    subscription = SubscriptionState(
                        facts: facts, policy: standardPolicy, version: state.version, retractions: state.retractions)
                }
                let row = RefundShareTests.purchase(text.row).transactions[0]
                if let state = bought, state.shows(row) {
                    bought = PurchaseState(
                        facts: state.facts.addingDetails(of: row), version: state.version,
                        refundRetractedAt: state.refundRetractedAt)
                }
            }
        }

        var shares: [Int?] {
            [
                subscription?.facts.periods.first?.details.revocationPercentage?.value,
                bought?.facts.revocationPercentage?.value,
            ]
        }
    }

    @Test(
        "The newest share of the refund that stands counts, and what the Server API shows",
        arguments: 0..<300 as Range<UInt64>)
    func orders(seed: UInt64) {
        var random = Seeded(seed: 44_300 + seed)
        func share() -> Int { [20_000, 50_000, 100_000].randomElement(using: &random) ?? 0 }
        let isServer = Bool.random(using: &random)
        let shown = (0..<2).map { _ in isServer && Bool.random(using: &random) ? share() : nil }
        // The refund of day 4 is gone in two answers, and another one comes.
        let days: [(Double, Double?)] = [(1, nil), (5, 4), (6, nil), (7, nil), (9, 8)]
        var answers = days.map { day, refundedAt in
            Answer(
                day: day, refundedAt: refundedAt, share: refundedAt.flatMap { shown[$0 == 4 ? 0 : 1] },
                isServer: isServer)
        }
        if Bool.random(using: &random) { answers.removeLast(3) }
        guard let last = answers.last, let stands = last.refundedAt else { return }
        let texts = (0..<Int.random(in: 0...4, using: &random)).map { number in
            let date: Double = Bool.random(using: &random) ? 4 : 8
            return Text(signedAt: date + 0.01 * Double(number + 1), refundedAt: date, share: share())
        }
        let newest = texts.filter { $0.refundedAt == stands }.max { $0.signedAt < $1.signedAt }?.share
        let expected = last.share ?? newest
        for _ in 0..<4 {
            var known = Known()
            let arrivals = texts.map { ($0, Int.random(in: 0...answers.count, using: &random)) }
            for (place, answer) in answers.enumerated() {
                known.waiting += arrivals.filter { $0.1 == place }.map(\.0)
                known.hear(answer)
            }
            known.waiting += arrivals.filter { $0.1 == answers.count }.map(\.0).shuffled(using: &random)
            known.hear(
                Answer(day: last.day + 0.5, refundedAt: stands, share: last.share, isServer: isServer))
            #expect(known.shares == [expected, expected], "\(random): \(answers) \(arrivals)")
        }
    }
}
