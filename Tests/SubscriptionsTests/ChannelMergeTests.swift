import SeededRandom
import Testing

@testable import Subscriptions

@Suite("What several channels say of generated lives merges in any order and any grouping")
struct ChannelMergeTests {
    /// What Apple signs on a day about one period of a life: the transaction, and of the newest one its renewal too.
    private func signed(_ life: Life, at instant: Double, using random: inout Seeded) -> SubscriptionEvidence? {
        let rows = life.rows(at: instant)
        guard let number = rows.indices.randomElement(using: &random) else { return nil }
        var row = rows[number]
        (row.source, row.asOf, row.path) = (.signedText, day(instant), "notification.signedTransactionInfo")
        if Bool.random(using: &random) {
            row.price = Price(milliunits: Int64.random(in: 0...9, using: &random) * 990, currency: "EUR")
        }
        let isNewest = number == rows.count - 1
        let renewal = isNewest && Bool.random(using: &random) ? life.renewal(at: instant) : nil
        return SubscriptionEvidence(
            originalTransactionID: life.id, asOf: day(instant), transactions: [row],
            renewals: renewal.map { said in
                [
                    RenewalRow(
                        path: "notification.signedRenewalInfo", asOf: day(instant), originalTransactionID: life.id,
                        renewal: said, periodEndsAt: row.expiresAt)
                ]
            } ?? [], coverage: renewal == nil ? .piece : .head, status: renewal == nil ? nil : .active)
    }

    /// The first answer about a life, and what answers and signed texts say later, in no order.
    private func evidence(of life: Life, using random: inout Seeded) -> (
        last: SubscriptionFacts, parts: [SubscriptionEvidence]
    ) {
        let answers = life.answers(upTo: 3, using: &random)
        let texts = (0..<5).compactMap { _ in
            signed(life, at: life.changes.randomElement(using: &random) ?? 0, using: &random)
        }
        return (
            SubscriptionFacts(life.answer(at: life.changes.first ?? 0, using: &random)),
            (answers + texts).shuffled(using: &random)
        )
    }

    @Test("Every order gives the same facts, and so does every repetition", arguments: [21, 22] as [UInt64])
    func anyOrder(seed: UInt64) {
        var merged = 0
        lives(150, seed: seed) { life, random in
            let (first, parts) = evidence(of: life, using: &random)
            let expected = parts.reduce(first) { $0.adding($1) }
            for _ in 0..<4 {
                let facts = parts.shuffled(using: &random).reduce(first) { $0.adding($1) }
                #expect(facts == expected, "\(random)")
                #expect(parts.reduce(facts) { $0.adding($1) } == expected, "\(random)")
            }
            merged += parts.count
        }
        #expect(merged > 750)
    }

    @Test("Merging is commutative, associative and idempotent", arguments: [23, 24] as [UInt64])
    func anyGrouping(seed: UInt64) {
        lives(150, seed: seed) { life, random in
            let (first, parts) = evidence(of: life, using: &random)
            let thirds = (0..<3).map { third in
                parts.indices.filter { $0 % 3 == third }.map { parts[$0] }.reduce(first) { $0.adding($1) }
            }
            let (a, b, c) = (thirds[0], thirds[1], thirds[2])
            #expect(a.merging(b) == b.merging(a), "\(random)")
            #expect(a.merging(b).merging(c) == a.merging(b.merging(c)), "\(random)")
            #expect(a.merging(a) == a, "\(random)")
            #expect(a.merging(b).merging(c) == parts.reduce(first) { $0.adding($1) }, "\(random)")
        }
    }
}
