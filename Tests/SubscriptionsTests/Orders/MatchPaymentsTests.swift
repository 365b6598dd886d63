import SeededRandom
import Testing

@testable import Subscriptions

@Suite("Each transaction pays one order, and each order is paid once")
struct MatchPaymentsTests {
    private func candidate(
        _ order: String, _ bought: Int64, ordered: Int64 = 0, _ cause: PaymentCandidate.Cause = .product
    ) -> PaymentCandidate {
        PaymentCandidate(
            orderID: order, orderedAt: Instant(milliseconds: ordered), cause: cause, bought: .purchase(bought),
            purchasedAt: Instant(milliseconds: 100 + bought))
    }

    private func paid(_ candidates: [PaymentCandidate]) -> [String] {
        matchPayments(candidates).map { "\($0.orderID) by \($0.bought)" }.sorted()
    }

    @Test("A token comes before a product, an older order before a newer one")
    func order() {
        #expect(
            paid([
                candidate("a", 1), candidate("b", 1, ordered: 5, .token), candidate("a", 2),
                candidate("b", 2, ordered: 5),
            ])
                == ["a by purchase(2)", "b by purchase(1)"])
        #expect(paid([candidate("b", 1, ordered: 1), candidate("a", 1, ordered: 2)]) == ["b by purchase(1)"])
        #expect(paid([]) == [])
    }

    @Test("The result does not depend on the order of the candidates, and nothing pays or is paid twice")
    func shuffled() {
        var random = Seeded(seed: 20_261_123)
        print(random)
        for _ in 0..<200 {
            let candidates = (0..<12).map { _ in
                candidate(
                    "\(Int.random(in: 0..<4, using: &random))", Int64.random(in: 0..<4, using: &random),
                    ordered: Int64.random(in: 0..<3, using: &random), Bool.random(using: &random) ? .token : .product)
            }
            let first = matchPayments(candidates)
            #expect(Set(first.map(\.orderID)).count == first.count && Set(first.map(\.bought)).count == first.count)
            #expect(paid(candidates.shuffled(using: &random)) == paid(candidates))
            let isLeft = candidates.contains { one in
                !first.contains { $0.orderID == one.orderID || $0.bought == one.bought }
            }
            #expect(!isLeft, "an order is unpaid although a transaction was free")
        }
    }
}
