import SeededRandom
import TestSupport
import Testing

@testable import Subscriptions

/// An order of ann's, who is customer 1.
private func order(
    _ id: String, at minute: Int64, _ product: ProductID = "coins", quantity: Int? = 1, by customer: Int64 = 1,
    isOpen: Bool = true, awaits: TransactionID? = nil, owned: Set<Int64> = []
) -> PayableOrder {
    var one = PayableOrder(
        id: id, customer: customer, productID: product, quantity: quantity, orderedAt: .minute(minute), isOpen: isOpen)
    (one.awaits, one.ownedBy) = (awaits, Set(owned.map { .purchase($0) }))
    return one
}

/// A transaction of ann's.
private func bought(
    _ id: Int64, at minute: Int64, _ product: ProductID = "coins", quantity: Int = 1, owner: Int64? = 1,
    _ change: (inout PayingTransaction) -> Void = { _ in }
) -> PayingTransaction {
    var one = PayingTransaction(
        .purchase(id), in: .production, productID: product, quantity: quantity, purchasedAt: .minute(minute),
        owner: owner)
    change(&one)
    return one
}

extension Instant {
    fileprivate static func minute(_ count: Int64) -> Instant { Instant(milliseconds: 0) + .minutes(count) }
}

/// What pays what, as text.
private func paid(_ transactions: [PayingTransaction], _ orders: [PayableOrder]) -> String {
    matchPayments(transactions, of: orders).map { "\($0.orderID)<\($0.bought.number) \($0.cause)" }.sorted()
        .joined(separator: ", ")
}

@Suite("Each transaction pays one order, and each order is paid once")
struct MatchPaymentsTests {
    @Test("A twin that was stored first and delivers nothing makes the delivered one no duplicate")
    func earlierTwin() {
        let twin = bought(1, at: 5) { $0.isDuplicate = true }
        #expect(paid([twin, bought(2, at: 5)], [order("o", at: 4)]) == "o<2 product")
    }

    @Test("The newest order before the purchase is paid, and the nearest one within ten minutes after it comes last")
    func nearest() {
        let orders = [order("a", at: 0), order("b", at: 10), order("c", at: 30)]
        #expect(paid([bought(1, at: 12)], orders) == "b<1 product")
        #expect(paid([bought(1, at: 12), bought(2, at: 13)], orders) == "a<2 product, b<1 product")
        #expect(
            paid([bought(1, at: 20), bought(2, at: 25), bought(3, at: 26)], orders)
                == "a<2 product, b<1 product, c<3 product")
        #expect(paid([bought(1, at: -1)], orders) == "a<1 product")
        #expect(paid([bought(1, at: -11)], orders) == "")
        #expect(paid([bought(1, at: -1) { $0.isAcknowledged = true }], orders) == "")
        #expect(paid([bought(1, at: 1) { $0.isAcknowledged = true }], orders) == "a<1 product")
    }

    @Test("A token decides alone; a token of another customer pays nobody else's; a renewal pays what its token names")
    func tokens() {
        let orders = [order("a", at: 0, quantity: 2), order("b", at: 5)]
        #expect(paid([bought(1, at: 9) { $0.tokenNames = .order("a") }], orders) == "a<1 token")
        #expect(paid([bought(1, at: 9) { $0.tokenNames = .order("elsewhere") }], orders) == "")
        #expect(paid([bought(1, at: 9) { $0.tokenNames = .customer(2) }], orders) == "")
        #expect(paid([bought(1, at: 9) { $0.tokenNames = .customer(1) }], orders) == "b<1 product")
        #expect(paid([bought(1, at: 9) { $0.isRenewal = true }], orders) == "")
        #expect(paid([bought(1, at: 9) { ($0.isRenewal, $0.tokenNames) = (true, .order("b")) }], orders) == "b<1 token")
        // The first one with the token pays, and the second pays nothing else.
        let both = [9, 7].map { at in bought(at, at: at) { ($0.tokenNames, $0.accountToken) = (.order("b"), "t") } }
        #expect(paid(both, orders) == "b<7 token")
    }

    @Test("A transaction that the caller names decides alone, if it was bought at most ten minutes before the order")
    func named() {
        let orders = [order("a", at: 20, quantity: 3), order("b", at: 11)]
        #expect(paid([bought(1, at: 12) { $0.namedFor = ["a"] }], orders) == "a<1 transaction")
        #expect(paid([bought(1, at: 9) { $0.namedFor = ["a"] }], orders) == "b<1 product")
        #expect(
            paid([bought(1, at: 11) { ($0.namedFor, $0.isAcknowledged) = (["a"], true) }], orders) == "a<1 transaction")
    }

    @Test("While an order awaits the transaction that the caller named, only a token or another name pays it")
    func awaits() {
        let waiting = [order("a", at: 1, awaits: "t"), order("b", at: 0)]
        let links = bought(1, at: 9) { ($0.provedFor, $0.sentFor) = (["a"], ["a"]) }
        #expect(paid([links], waiting) == "b<1 product")
        #expect(paid([links, bought(2, at: 8) { $0.tokenNames = .order("a") }], waiting) == "a<2 token, b<1 product")
        #expect(paid([links, bought(2, at: 8) { $0.namedFor = ["a"] }], waiting) == "a<2 transaction, b<1 product")
        #expect(paid([links], [order("a", at: 1)]) == "a<1 proof")
        #expect(paid([bought(1, at: -1)], waiting) == "b<1 product")
    }

    @Test("An order for what is owned by something else is paid by what no other order needs, by its token and by name")
    func owned() {
        let orders = [order("a", at: 0), order("b", at: 5, owned: [99])]
        #expect(paid([bought(1, at: 9) { $0.provedFor = ["b"] }], orders) == "a<1 product")
        #expect(
            paid([bought(1, at: 9), bought(2, at: 8) { $0.provedFor = ["b"] }], orders) == "a<2 product, b<1 product")
        #expect(paid([bought(1, at: 9) { $0.provedFor = ["b"] }], [orders[1]]) == "b<1 proof")
        #expect(paid([bought(1, at: 9) { $0.namedFor = ["b"] }], orders) == "b<1 transaction")
        #expect(paid([bought(1, at: 9) { $0.tokenNames = .order("b") }], orders) == "b<1 token")
    }

    @Test("What an order may be paid by makes no other order come before it")
    func ownedByPayer() {
        let orders = [order("a", at: 0, owned: [1]), order("b", at: 5, owned: [1])]
        #expect(paid([bought(1, at: 9)], orders) == "b<1 product")
        #expect(paid([bought(1, at: 9) { $0.provedFor = ["a"] }], orders) == "a<1 proof")
        #expect(paid([bought(1, at: 9) { $0.provedFor = ["a", "b"] }], orders) == "b<1 proof")
    }

    @Test("What a proof claimed before comes first where proofs claim, and pays by its date")
    func claimed() {
        let orders = [order("a", at: 0)]
        let claimed = bought(1, at: 9) { ($0.provedFor, $0.isClaimed) = (["a"], true) }
        let free = bought(2, at: 8, owner: nil) { ($0.provedFor, $0.isClaimable) = (["a"], true) }
        let claims = matchPayments([claimed, free], of: orders, isClaiming: true)
        #expect(claims.map(\.bought) == [.purchase(1)])
        #expect(paid([claimed, bought(2, at: 8) { $0.provedFor = ["a"] }], orders) == "a<2 proof")
    }

    @Test("A quantity does not count where Apple sells one at a time")
    func singly() {
        #expect(paid([bought(1, at: 9, quantity: 3)], [order("a", at: 0, quantity: nil)]) == "a<1 product")
    }

    @Test(
        "A customer of many purchases costs steps in proportion to what may pay", arguments: [50, 100] as [Int64])
    func steps(count: Int64) {
        let orders = (0..<40 as Range<Int64>).map { order("\($0)", at: $0) }
        var random = Seeded(seed: 42_000 + UInt64(count))
        print(random)
        let transactions = (0..<count).map { bought($0, at: .random(in: 0...80, using: &random)) }
        var steps = 0
        let payments = matchPayments(transactions, of: orders, steps: &steps)
        #expect(payments.count <= orders.count && payments.count > 30)
        let pairs = transactions.reduce(0) { sum, one in sum + orders.count { $0.orderedAt <= one.purchasedAt } }
        #expect(steps <= 4 * pairs, "\(steps) steps for \(pairs) pairs")
    }

    @Test(
        "A proof comes before a name, a name before the product; quantities are equal; only open orders wait for a product"
    )
    func causes() {
        let orders = [order("a", at: 0), order("b", at: 1), order("c", at: 2, isOpen: false)]
        let one = bought(1, at: 9) { ($0.provedFor, $0.sentFor) = (["a"], ["b"]) }
        #expect(paid([one], orders) == "a<1 proof")
        #expect(paid([one, bought(2, at: 8) { $0.sentFor = ["c"] }], orders) == "a<1 proof, c<2 order")
        #expect(paid([bought(1, at: 9)], orders) == "b<1 product")
        #expect(paid([bought(1, at: 9, quantity: 2)], orders) == "")
        #expect(paid([bought(1, at: 9, "gems")], orders) == "")
        #expect(paid([bought(1, at: 9, owner: 2)], orders) == "")
        #expect(
            paid([bought(1, at: 9, owner: nil) { ($0.provedFor, $0.isClaimable) = (["a"], true) }], orders)
                == "a<1 proof")
        #expect(paid([bought(1, at: 9, owner: 2) { $0.provedFor = ["a"] }], orders) == "")
    }

    @Test("An older transaction pays another order where its newest one is all that a newer transaction can pay")
    func leavesOthersOne() {
        let orders = [order("a", at: 0), order("b", at: 10)]
        let (one, other) = (
            bought(1, at: 20) { $0.provedFor = ["a", "b"] }, bought(2, at: 30) { $0.provedFor = ["b"] }
        )
        #expect(paid([one], orders) == "b<1 proof")
        #expect(paid([one, other], orders) == "a<1 proof, b<2 proof")
        let late = [one, other, bought(3, at: 40) { $0.provedFor = ["b"] }]
        #expect(paid(late, orders) == "a<1 proof, b<2 proof")
    }

    @Test("A possible duplicate pays nothing; what carries a token is none, and makes no other one a duplicate")
    func duplicates() {
        let orders = [order("a", at: 0), order("b", at: 1)]
        #expect(paid([bought(2, at: 5), bought(1, at: 5)], orders) == "b<1 product")
        #expect(
            paid([bought(2, at: 5) { $0.accountToken = "x" }, bought(1, at: 5)], orders) == "a<2 product, b<1 product")
        #expect(
            paid([bought(2, at: 5), bought(1, at: 5) { $0.accountToken = "x" }], orders) == "a<2 product, b<1 product")
        let apart = [1, 2].map { id in bought(id, at: 5) { $0.accountToken = "\(id)" } }
        #expect(paid(apart, orders) == "a<2 product, b<1 product")
        #expect(paid([bought(1, at: 5) { $0.isDuplicate = true }], orders) == "")
        for id in [1, 3] as [Int64] {
            let naming = bought(2, at: 5) {
                ($0.tokenNames, $0.accountToken, $0.isDuplicate) = (.order("a"), "a", true)
            }
            #expect(paid([bought(id, at: 5), naming], orders) == "a<2 token, b<\(id) product")
        }
    }

    @Test(
        "It equals a brute-force matching, whatever the order of what is given", arguments: 1...8 as ClosedRange<UInt64>
    )
    func model(seed: UInt64) {
        var random = Seeded(seed: 40_000 + seed)
        print(random)
        func links(_ orders: [PayableOrder]) -> Set<String> {
            Set(orders.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }.map(\.id))
        }
        for _ in 0..<1_000 {
            let products: [ProductID] = ["coins", "gems"]
            let orders = (0..<Int.random(in: 1...4, using: &random)).map { index in
                order(
                    "\(index)", at: 3 * Int64.random(in: 0...13, using: &random),
                    products.randomElement(using: &random) ?? "coins",
                    quantity: [1, 1, 2, 2, nil].randomElement(using: &random) ?? 1,
                    by: .random(in: 1...2, using: &random), isOpen: Int.random(in: 0..<4, using: &random) > 0,
                    awaits: Int.random(in: 0..<6, using: &random) == 0 ? "t" : nil,
                    owned: Set((0..<5 as Range<Int64>).filter { _ in Int.random(in: 0..<8, using: &random) == 0 }))
            }
            let transactions = (0..<Int64.random(in: 0...4, using: &random)).map { id in
                let owner: Int64? =
                    Int.random(in: 0..<4, using: &random) == 0 ? nil : .random(in: 1...2, using: &random)
                return bought(
                    id, at: 1 + 3 * Int64.random(in: -3...15, using: &random),
                    products.randomElement(using: &random) ?? "coins",
                    quantity: .random(in: 1...2, using: &random), owner: owner
                ) { one in
                    (one.isClaimable, one.isAcknowledged) = (owner == nil, Int.random(in: 0..<4, using: &random) == 0)
                    one.isClaimed = owner != nil && Int.random(in: 0..<3, using: &random) == 0
                    (one.provedFor, one.sentFor, one.namedFor) = (links(orders), links(orders), [])
                    switch Int.random(in: 0..<8, using: &random) {
                    case 0: one.tokenNames = .order("\(Int.random(in: 0..<5, using: &random))")
                    case 1: one.tokenNames = .customer(.random(in: 1...3, using: &random))
                    case 2: one.namedFor = links(orders)
                    case 3: one.isRenewal = true
                    default: break
                    }
                    if one.tokenNames != nil { one.accountToken = "\(id)" }
                }
            }
            let payments = matchPayments(transactions, of: orders)
            let pairs = Dictionary(uniqueKeysWithValues: payments.map { ($0.orderID, $0.bought) })
            #expect(Set(payments.map(\.bought)).count == payments.count)
            #expect(
                Set(matchPayments(transactions.shuffled(using: &random), of: orders.shuffled(using: &random)))
                    == Set(payments))
            #expect(pairs == modelPayments(transactions, orders), "\(random) \(orders) \(transactions)")
            let claims = matchPayments(transactions, of: orders, isClaiming: true)
            #expect(
                Dictionary(uniqueKeysWithValues: claims.map { ($0.orderID, $0.bought) })
                    == modelPayments(transactions, orders, isClaiming: true), "\(random) \(orders) \(transactions)")
        }
    }

    /// What is paid grows with every purchase, and nothing that was paid becomes unpaid.
    @Test(
        "The orders that are paid by product are the same whichever purchase is seen first",
        arguments: 1...4 as ClosedRange<UInt64>)
    func arrivals(seed: UInt64) {
        var random = Seeded(seed: 41_000 + seed)
        print(random)
        for _ in 0..<2_000 {
            let orders = (0..<4).map { order("\($0)", at: .random(in: 0...40, using: &random)) }
            let transactions = (0..<4).map { bought($0, at: .random(in: 0...60, using: &random)) }
            var before: Set<String> = []
            for count in 1...4 {
                let now = Set(matchPayments(Array(transactions.prefix(count)), of: orders).map(\.orderID))
                #expect(now.isSuperset(of: before), "\(random)")
                before = now
            }
        }
    }
}
