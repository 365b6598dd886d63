import SeededRandom
import Subscriptions

/// A customer's orders and purchases on two devices, and what happens to them.
struct PurchaseStory {
    struct Ordered {
        let product: ProductID
        let quantity: Int32
        let minute: Int
        /// Whether the device reported the payment as failed, so that the order is not open any more.
        let isFailed: Bool
        /// Whether placing it is one of the steps.
        var isLate = false
    }

    struct Bought {
        let product: ProductID
        let quantity: Int
        let minute: Int
        /// The order whose account token it carries; nil: the token was lost.
        let token: Int?
        /// Whether Apple shows the token only from one of the steps on.
        var isTokenLate = false
        let isFamilyShared: Bool
        /// Whether Apple lists it under a second id, too.
        let hasTwin: Bool
    }

    struct Sent: Hashable {
        enum Way: Hashable { case proof, named, launch, foreign }

        /// The receipt: the purchases of a device up to one of them.
        let contents: [Int]
        let way: Way
        /// The order for which it is sent.
        let order: Int?
        /// The purchase that the caller names, which Apple may list later.
        let named: Int?
        /// The purchases that the device restored, so that Apple dates them later.
        var copies: [Int: Copy] = [:]
    }

    /// How Apple dates a purchase later. It always gives the first date beside that.
    enum Copy: Hashable, CaseIterable {
        /// The row has an id of its own.
        case restored
        /// The row has the id of the purchase.
        case redated
    }

    enum Step: Hashable {
        case upload(Sent)
        /// Apple takes a purchase back, and a receipt is sent again.
        case refund(Int, Sent)
        /// Apple shows the token of a purchase from now on, and a receipt is sent again.
        case token(Int, Sent)
        /// A person assigns a purchase to the customer.
        case assignment(Int)
        /// The stranger turns out to be the customer.
        case merge
        /// The service carries out what is due.
        case acknowledgement
        /// An order is placed, perhaps after what pays it is stored.
        case order(Int)

        var sent: Sent? {
            switch self {
            case .upload(let sent), .refund(_, let sent), .token(_, let sent): sent
            case .acknowledgement, .order, .assignment, .merge: nil
            }
        }

        var order: Int? {
            if case .order(let order) = self { order } else { nil }
        }
    }

    var orders: [Ordered] = []
    var purchases: [Bought] = []
    var steps: [Step] = []
    /// Whether the result must be the same in every order of the steps: what was acknowledged stays as it was, and nothing
    /// is assigned that is not stored.
    var isOrderless: Bool {
        !steps.contains { step in
            if case .assignment = step { true } else { step == .acknowledgement }
        }
    }

    init(_ random: inout Seeded) {
        func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
        func product() -> ProductID { chance(3) ? "gems" : "coins" }
        // In half of the stories only devices send receipts, so that proofs claim.
        let (isByDevicesAlone, hasStranger, hasTwin) = (chance(2), chance(4), chance(4))
        orders = (0..<Int.random(in: 1...4, using: &random)).map { _ in
            Ordered(
                product: product(), quantity: chance(3) ? 2 : 1, minute: .random(in: 0...40, using: &random),
                isFailed: chance(6))
        }
        let minutes = Set(
            (0..<Int.random(in: 0...4, using: &random)).map { _ in Int.random(in: -60...50, using: &random) })
        purchases = minutes.sorted().map { minute in
            let (product, token) = (product(), orders.indices.randomElement(using: &random) ?? 0)
            let carries = chance(3) && orders[token].product == product
            return Bought(
                product: product, quantity: chance(3) ? 2 : 1, minute: minute, token: carries ? token : nil,
                isFamilyShared: chance(10), hasTwin: hasTwin && !carries && chance(2))
        }
        var uploads = Self.uploads(of: purchases, orders, isByDevicesAlone: isByDevicesAlone, &random)
        let isNamed = Set(uploads.compactMap(\.named))
        for index in uploads.indices {
            for one in uploads[index].contents where chance(4) && !purchases[one].hasTwin && !isNamed.contains(one) {
                uploads[index].copies[one] = Copy.allCases.randomElement(using: &random)
            }
        }
        steps = uploads.map { .upload($0) }
        if let again = uploads.randomElement(using: &random), chance(2) { steps.append(.upload(again)) }
        if hasStranger, isByDevicesAlone, let all = uploads.randomElement(using: &random) {
            steps.append(.upload(Sent(contents: all.contents, way: .foreign, order: nil, named: nil)))
            if chance(2) { steps.append(.merge) }
            if chance(3), let taken = all.contents.randomElement(using: &random) { steps.append(.assignment(taken)) }
        }
        for index in purchases.indices where chance(2) {
            let (one, holding) = (purchases[index], uploads.filter { $0.contents.contains(index) })
            guard one.token != nil, purchases.count(where: { $0.token == one.token }) == 1,
                let again = holding.randomElement(using: &random)
            else { continue }
            purchases[index].isTokenLate = true
            steps.append(.token(index, again))
        }
        // What a twin gives depends on which of both is delivered.
        if !hasTwin, chance(2), let sent = uploads.filter({ $0.order != nil }).randomElement(using: &random),
            let taken = sent.contents.last, !uploads.contains(where: { $0.named == taken })
        {
            steps.append(.refund(taken, sent))
        }
        if chance(3) { steps.append(.acknowledgement) }
        // The newest ones, for which nothing is sent, and which no token names.
        let named = Set(uploads.compactMap(\.order)).union(purchases.compactMap(\.token))
        let newest = orders.indices.sorted { orders[$0].minute > orders[$1].minute }
        for index in newest.prefix(while: { !named.contains($0) && !orders[$0].isFailed }) {
            orders[index].isLate = true
            steps.append(.order(index))
        }
    }

    /// What two devices and the service send: after each purchase the receipt of its device.
    private static func uploads(
        of purchases: [Bought], _ orders: [Ordered], isByDevicesAlone: Bool, _ random: inout Seeded
    ) -> [Sent] {
        func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
        let devices = purchases.indices.map { _ in chance(2) }
        var uploads: [Sent] = []
        for last in purchases.indices {
            let order = orders.indices.filter { orders[$0].product == purchases[last].product }
                .randomElement(using: &random)
            let way: Sent.Way = isByDevicesAlone || chance(2) ? .proof : chance(2) ? .named : .launch
            if order == nil, isByDevicesAlone { continue }
            let isLaunch = way == .launch || order == nil
            uploads.append(
                Sent(
                    contents: purchases.indices.filter { $0 <= last && devices[$0] == devices[last] },
                    way: isLaunch ? .launch : way, order: isLaunch ? nil : order,
                    named: way == .named && !isLaunch && chance(2)
                        ? purchases.indices.randomElement(using: &random) : nil))
        }
        // The caller names what was bought for the order, and Apple lists it sooner or later.
        let known = Set(uploads.flatMap(\.contents))
        return uploads.map { sent in
            let isRight = sent.named.flatMap { named in
                sent.order.map { order in
                    known.contains(named) && purchases[named].product == orders[order].product
                        && purchases[named].minute >= orders[order].minute - 10
                        && purchases[named].token == nil && !purchases[named].isFamilyShared
                }
            }
            return Sent(
                contents: sent.contents, way: sent.way, order: sent.order, named: isRight == true ? sent.named : nil)
        }
    }

    /// Every order of the steps where these are few, else some.
    func arrivals(_ random: inout Seeded) -> [[Step]] {
        Set(shuffles(&random).map(placingInTurn)).sorted { "\($0)" < "\($1)" }
    }

    /// Orders are placed one after the other, each before something that was bought after it is stored.
    private func placingInTurn(_ steps: [Step]) -> [Step] {
        var waiting = steps.compactMap(\.order).sorted { orders[$0].minute > orders[$1].minute }
        var placing: [Step] = []
        for step in steps {
            let newest = step.sent?.contents.map { purchases[$0].minute }.max() ?? .min
            while let next = waiting.last, orders[next].minute < newest {
                placing.append(.order(next))
                waiting.removeLast()
            }
            if step.order == nil {
                placing.append(step)
            } else if let next = waiting.popLast() {
                placing.append(.order(next))
            }
        }
        return placing
    }

    private func shuffles(_ random: inout Seeded) -> [[Step]] {
        func permutations(_ rest: [Step]) -> [[Step]] {
            rest.isEmpty
                ? [[]]
                : rest.indices.flatMap { index in
                    var others = rest
                    let first = others.remove(at: index)
                    return permutations(others).map { [first] + $0 }
                }
        }
        return steps.count <= 4
            ? permutations(steps) : (0..<8).map { $0 == 0 ? steps : steps.shuffled(using: &random) }
    }
}
