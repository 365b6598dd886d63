import Foundation
import Postgres
import SeededRandom
import TestSupport
import Testing

@testable import Subscriptions
@testable import Tracking

/// What one customer orders and buys on two devices, of which nothing is carried out.
private struct TwoDevices: CustomStringConvertible {
    enum Step: Hashable {
        /// The receipt of a device, with the proof of an order.
        case proof(of: Int, device: Int)
        /// The same, by a service that names the order.
        case name(of: Int, device: Int)
        case launch(device: Int)
        /// The newest order is placed.
        case place

        var device: Int? {
            switch self {
            case .proof(_, let device), .name(_, let device), .launch(let device): device
            case .place: nil
            }
        }
    }

    let product: ProductID
    /// The minutes of the orders, the newest one last.
    let orders: [Int]
    /// The minute and the device of each purchase.
    let purchases: [(minute: Int, device: Int)]
    let steps: [Step]

    init(_ random: inout Seeded) {
        func some(_ count: Int) -> Int { .random(in: 0..<count, using: &random) }
        let isLateOrder = some(3) == 0
        product = some(2) == 0 ? "themes" : "coins"
        orders = Set((0...some(3)).map { _ in some(40) }).sorted()
        purchases = Set((0...some(3)).map { _ in some(60) - 8 }).sorted().map { ($0, some(2)) }
        let sentFor = isLateOrder ? orders.dropLast().indices : orders.indices
        var steps = (0...2 + some(2)).map { _ -> Step in
            guard let order = sentFor.randomElement(using: &random), some(6) > 0 else {
                return .launch(device: some(2))
            }
            return some(4) > 0 ? .proof(of: order, device: some(2)) : .name(of: order, device: some(2))
        }
        if isLateOrder { steps.append(.place) }
        self.steps = steps
    }

    var description: String { "\(product) ordered \(orders) bought \(purchases): \(steps)" }

    /// What pays at the end by the rule read aloud, where everything is the customer's: the places of the purchases, by the
    /// places of the orders.
    func model() -> [Int: Int] {
        let ordered = orders.indices.map { place in
            var order = PayableOrder(
                id: "\(place)", customer: 1, productID: product, quantity: product == "themes" ? nil : 1,
                orderedAt: .minute(orders[place]), isOpen: true)
            if product == "themes" { order.ownedBy = Set(purchases.indices.map { .purchase(Int64($0)) }) }
            return order
        }
        let bought = purchases.indices.map { place in
            var one = PayingTransaction(
                .purchase(Int64(place)), in: .production, productID: product, quantity: 1,
                purchasedAt: .minute(purchases[place].minute), owner: 1)
            for step in steps where step.device == purchases[place].device {
                switch step {
                case .proof(let order, _): one.provedFor.insert("\(order)")
                case .name(let order, _): one.sentFor.insert("\(order)")
                case .launch, .place: break
                }
            }
            return one
        }
        return modelPayments(bought, ordered).reduce(into: [:]) { payers, payment in
            payers[Int(payment.key) ?? -1] = Int(payment.value.number)
        }
    }
}

extension Instant {
    fileprivate static func minute(_ count: Int) -> Instant { Instant(milliseconds: 0) + .minutes(Int64(count)) }
}

/// One story in one order of its steps, by a customer of its own.
private struct Told {
    let story: TwoDevices
    let customer: String
    /// The steps, and at the end what makes everything the customer's: both devices launch.
    let steps: [TwoDevices.Step]
    var placed: [Int: PlacedOrder] = [:]

    init(_ story: TwoDevices, by customer: String, _ steps: [TwoDevices.Step]) {
        (self.story, self.customer) = (story, customer)
        self.steps = steps + [.launch(device: 0), .launch(device: 1)]
    }
}

@Suite("Which device comes first decides nothing where everything is the customer's and still due")
struct TwoDeviceTests {
    private static func days(_ minute: Int) -> Double { -2 + Double(minute) / 1_440 }

    @Test(
        "What pays which order, why, and which order needs no payment is what the rule says",
        arguments: 1...3 as ClosedRange<UInt64>)
    func rule(block: UInt64) async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            var all: [Told] = []
            for number in 0..<12 as Range<UInt64> {
                var random = Seeded(seed: 7_000 + block * 100 + number)
                print(random)
                let story = TwoDevices(&random)
                for turn in 0..<5 {
                    let steps = turn == 0 ? story.steps : story.steps.shuffled(using: &random)
                    all.append(Told(story, by: "\(random.seed)-\(turn)", steps))
                }
            }
            for index in all.indices {
                let isLate = all[index].steps.contains(.place)
                for place in all[index].story.orders.indices.dropLast(isLate ? 1 : 0) {
                    try await Self.place(place, of: &all[index], in: test)
                }
            }
            for turn in 0..<(all.map(\.steps.count).max() ?? 0) {
                try await Self.take(turn, of: &all, in: test)
            }
            var causes: [String: Set<String>] = [:]
            for told in all {
                let model = told.story.model()
                for (place, placed) in told.placed.sorted(by: { $0.key < $1.key }) {
                    let order = try #require(try await test.ledger.orders.read(placed.id, of: test.app.bundleID))
                    let payer = model[place].map { "\(told.customer)-\($0)" }
                    let comment = Comment("order \(place) of \(told.customer), \(told.steps) of \(told.story)")
                    #expect(order.transactionID == payer, comment)
                    let isOwned = told.story.product == "themes" && !told.story.purchases.isEmpty
                    #expect(order.state == (payer != nil ? .paid : isOwned ? .delivered : .created), comment)
                    causes["\(told.story) \(place)", default: []].insert(
                        order.cause == "moved" ? "placed" : order.cause)
                }
            }
            #expect(causes.filter { $0.value.count > 1 } == [:])
            #expect(try await test.violations() == [])
        }
    }

    /// Places an order as long ago as the story says, and lets what is stored pay it as if it were placed then.
    private static func place(_ place: Int, of told: inout Told, in test: TestLedger) async throws {
        let placed = try await test.place(
            told.story.product, by: told.customer, days: Self.days(told.story.orders[place]))
        try await test.database.transaction { try LedgerOrders.decidePayments(of: [placed.id], in: $0) }
        told.placed[place] = placed
    }

    /// Takes one step of each. What is sent is settled together.
    private static func take(_ turn: Int, of all: inout [Told], in test: TestLedger) async throws {
        var (uploads, findings): ([Upload], [Finding]) = ([], [])
        for index in all.indices where all[index].steps.count > turn {
            let (told, step) = (all[index], all[index].steps[turn])
            guard let device = step.device else {
                try await place(told.story.orders.count - 1, of: &all[index], in: test)
                continue
            }
            let reference: OrderReference? =
                switch step {
                case .proof(let order, _): OrderReference(id: told.placed[order]?.id ?? "", isProved: true)
                case .name(let order, _): OrderReference(id: told.placed[order]?.id ?? "", isProved: false)
                case .launch, .place: nil
                }
            uploads.append(
                Upload(
                    appID: test.app.id, customer: reference?.isProved == true ? nil : told.customer,
                    receipt: Array("\(told.customer) \(device)".utf8), imported: false, order: reference))
            let rows = told.story.purchases.indices.filter { told.story.purchases[$0].device == device }.map { place in
                TransactionRow(
                    path: "latest_receipt_info[\(place)]", source: .latestReceiptInfo,
                    asOf: test.at(-1 + Double(turn) / 1_000),
                    transactionID: TransactionID("\(told.customer)-\(place)"),
                    originalTransactionID: OriginalTransactionID("\(told.customer)-\(place)"),
                    productID: told.story.product,
                    purchasedAt: test.at(days(told.story.purchases[place].minute)))
            }
            findings.append(
                .verified(
                    Evidence(
                        environment: .production, bundleID: "com.example.app", asOf: test.at(-1 + Double(turn) / 1_000),
                        transactions: rows)))
        }
        let stored = try await test.ledger.intake.store(uploads)
        var settlements: [Settlement] = []
        for (one, finding) in zip(stored, findings) {
            settlements.append(test.settlement(try await test.claim(one.receiptID), finding))
        }
        guard !settlements.isEmpty else { return }
        let settled = try await test.ledger.settlements.settleInFull(settlements)
        #expect(settled.failures.map(\.reason) == [])
    }
}
