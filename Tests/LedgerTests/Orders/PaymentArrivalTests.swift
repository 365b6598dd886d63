import Foundation
import Postgres
import SeededRandom
import Subscriptions
import TestSupport
import Testing

@testable import Ledger

private let reused = OncePerSuite<ReusedDatabase>.database()

/// A customer's orders and purchases on two devices, and the uploads that bring them.
private struct PurchaseStory {
    struct Ordered {
        let product: ProductID
        let quantity: Int32
        let minute: Int
        /// Whether the device reported the payment as failed, so that the order is not open any more.
        let isFailed: Bool
    }

    struct Bought {
        let product: ProductID
        let quantity: Int
        let minute: Int
        /// The order whose account token it carries; nil: the token was lost.
        let token: Int?
        let isRefunded: Bool
        let isFamilyShared: Bool
    }

    struct Brought: Hashable {
        enum Way: Hashable { case proof, named, launch, foreign }

        /// The receipt: the purchases of a device up to one of them.
        let contents: [Int]
        let way: Way
        /// The order for which it is sent.
        let order: Int?
        /// The purchase that the caller names.
        let named: Int?
    }

    var orders: [Ordered] = []
    var purchases: [Bought] = []
    var uploads: [Brought] = []

    init(_ random: inout Seeded) {
        func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
        func product() -> ProductID { chance(3) ? "gems" : "coins" }
        // In half of the stories only devices send receipts, so that proofs claim.
        let (isByDevicesAlone, hasStranger) = (chance(2), chance(4))
        orders = (0..<Int.random(in: 1...4, using: &random)).map { _ in
            Ordered(
                product: product(), quantity: chance(3) ? 2 : 1, minute: .random(in: 0...40, using: &random),
                isFailed: chance(6))
        }
        purchases = (0..<Int.random(in: 0...4, using: &random)).map { _ in
            let (product, token) = (product(), orders.indices.randomElement(using: &random) ?? 0)
            let carries = chance(3) && orders[token].product == product
            return Bought(
                product: product, quantity: chance(3) ? 2 : 1, minute: .random(in: -60...50, using: &random),
                token: carries ? token : nil, isRefunded: chance(8), isFamilyShared: chance(10))
        }
        let devices = purchases.indices.map { _ in chance(2) }
        let inOrder = purchases.indices.sorted { (purchases[$0].minute, $0) < (purchases[$1].minute, $1) }
        for place in inOrder.indices {
            let last = inOrder[place]
            let contents = inOrder[...place].filter { devices[$0] == devices[last] }
            let order = orders.indices.filter { orders[$0].product == purchases[last].product }
                .randomElement(using: &random)
            let way: Brought.Way =
                isByDevicesAlone || chance(2) ? .proof : chance(2) ? .named : .launch
            uploads.append(
                Brought(
                    contents: contents,
                    way: order == nil && way != .launch ? (isByDevicesAlone ? .proof : .launch) : way,
                    order: way == .launch ? nil : order, named: way == .named && chance(2) ? last : nil))
        }
        uploads.removeAll { $0.way == .proof && $0.order == nil }
        if let again = uploads.randomElement(using: &random) { uploads.append(again) }
        if hasStranger, isByDevicesAlone, let all = uploads.randomElement(using: &random) {
            uploads.append(Brought(contents: all.contents, way: .foreign, order: nil, named: nil))
        }
    }
}

/// What came of a story.
private struct Ending: Equatable, CustomStringConvertible {
    var units: Int64
    var paid: [Int]

    var description: String { "\(units) units, paid \(paid)" }
}

@Suite("The same orders are paid and the same units credited in every arrival order", .serialized, reused)
struct PaymentArrivalTests {
    /// Orders and purchases begin here, in days from now.
    private static let beginning = -2.0
    /// What was bought before this minute is not delivered.
    private static let deliveredSince = -40

    @Test("Credited units and paid orders equal a brute-force matching", arguments: 1...6 as ClosedRange<UInt64>)
    func arrivals(block: UInt64) async throws {
        try await withLedger(in: reused) { test in
            try await Self.sell(in: test)
            for number in 0..<12 as Range<UInt64> {
                var random = Seeded(seed: 4_000 + block * 100 + number)
                print(random)
                let story = PurchaseStory(&random)
                var endings: [Ending] = []
                for turn in 0..<4 {
                    let customer = "\(random.seed)-\(turn)"
                    let uploads = turn == 0 ? story.uploads : story.uploads.shuffled(using: &random)
                    endings.append(try await play(story, uploads, as: customer, in: test))
                }
                let expected = Self.expected(of: story)
                #expect(endings == Array(repeating: expected, count: 4), "\(random) \(story)")
            }
            #expect(try await test.violations() == [])
        }
    }

    private static func minute(_ count: Int, in test: TestLedger) -> Instant {
        test.at(beginning) + .minutes(Int64(count))
    }

    private static func sell(in test: TestLedger) async throws {
        try await test.sell(
            [("coins", 100), ("gems", 7)].map { id, units in
                var product = CatalogProduct(id: ProductID(id), kind: .consumable, entitlements: [])
                product.credit = CatalogProduct.Credit(name: id, units: Int32(units))
                product.deliversSince = minute(deliveredSince, in: test)
                return product
            })
    }

    /// Plays a story; returns what came of it.
    private func play(
        _ story: PurchaseStory, _ uploads: [PurchaseStory.Brought], as customer: String, in test: TestLedger
    ) async throws -> Ending {
        var placed: [PlacedOrder] = []
        for ordered in story.orders {
            var request = orderRequest(ordered.product, by: customer)
            request.quantity = ordered.quantity
            let order = try await test.ledger.orders.place(
                request, of: test.app.bundleID, requestKey: UUID().uuidString)
            let at = Self.minute(ordered.minute, in: test).iso8601
            let state = ordered.isFailed ? ", state = 'failed', cause = 'device'" : ""
            try await test.run(
                "UPDATE ledger.purchase_order SET created_at = '\(at)'\(state) WHERE order_id = '\(order.id)'")
            placed.append(order)
        }
        for (place, upload) in uploads.enumerated() {
            let receipt = try await store(upload, of: placed, as: customer, in: test)
            try await test.check(
                receipt,
                answer(upload, story, placed, as: customer, asOf: test.at(-0.5 + Double(place) / 1_000), in: test))
            if let order = upload.order { try await expectNoneAbsent(placed[order], receipt, customer, in: test) }
        }
        return try await ending(of: placed, as: customer, in: test)
    }

    private func store(
        _ upload: PurchaseStory.Brought, of placed: [PlacedOrder], as customer: String, in test: TestLedger
    ) async throws -> ReceiptID {
        let reference = upload.order.map { order in
            OrderReference(
                id: placed[order].id, isProved: upload.way == .proof,
                transactionID: upload.named.map { TransactionID("\(customer)-\($0)") })
        }
        let uploader: String? =
            switch upload.way {
            case .proof: nil
            case .named, .launch: customer
            case .foreign: "stranger of \(customer)"
            }
        let stored = try await test.ledger.intake.store([
            Upload(
                appID: test.app.id, customer: uploader, receipt: Array("\(customer) \(upload.contents)".utf8),
                imported: false, order: reference)
        ])
        return try #require(stored.first).receiptID
    }

    private func answer(
        _ upload: PurchaseStory.Brought, _ story: PurchaseStory, _ placed: [PlacedOrder], as customer: String,
        asOf: Instant, in test: TestLedger
    ) -> Finding {
        .verified(
            Evidence(
                environment: .production, bundleID: "com.example.app", asOf: asOf,
                transactions: upload.contents.map { index in
                    let one = story.purchases[index]
                    return TransactionRow(
                        path: "latest_receipt_info[\(index)]", source: .latestReceiptInfo, asOf: asOf,
                        transactionID: TransactionID("\(customer)-\(index)"),
                        originalTransactionID: OriginalTransactionID("\(customer)-\(index)"), productID: one.product,
                        quantity: one.quantity, purchasedAt: Self.minute(one.minute, in: test),
                        cancelledAt: one.isRefunded ? test.at(-1) : nil,
                        ownership: one.isFamilyShared ? .familyShared : .purchased,
                        appAccountToken: one.token.map { placed[$0].appAccountToken })
                }))
    }

    /// A device hears `absent` only where nothing of its customer is free to pay the order.
    private func expectNoneAbsent(
        _ placed: PlacedOrder, _ receipt: ReceiptID, _ customer: String, in test: TestLedger
    ) async throws {
        let order = try #require(try await test.ledger.orders.read(placed.id, of: test.app.bundleID))
        guard order.transactionID == nil else { return }
        let contents = try await test.ledger.intake.purchases(in: receipt, for: customer)
        guard case .nothing = contents.fit(for: order) else { return }
        let free = contents.items.filter { item in
            item.productID == order.productID && item.quantity == order.quantity && item.isInTime(for: order)
                && item.isOwned && !item.isRevoked && item.orderID == nil
        }
        // What names another order or is a family member's pays none.
        let tokens = try await test.text(
            "SELECT count(*) FROM ledger.purchase WHERE transaction_id = ANY($1::text[]) AND app_account_token IS NULL "
                + "AND facts #>> '{ownership,word}' <> 'FAMILY_SHARED'", [.texts(free.map(\.transactionID))])
        #expect(tokens == "0", "\(customer) hears absent about \(order) although \(free) is unpaid")
    }

    private func ending(of placed: [PlacedOrder], as customer: String, in test: TestLedger) async throws -> Ending {
        var paid: [Int] = []
        func isPaid(_ order: PlacedOrder) async throws -> Order {
            try #require(try await test.ledger.orders.read(order.id, of: test.app.bundleID))
        }
        for (index, order) in placed.enumerated() where try await isPaid(order).state == .paid { paid.append(index) }
        let due = try await test.ledger.deliveries.read(
            of: test.app.bundleID, DeliveryFilter(state: .due, customer: customer), after: 0, limit: 100
        ).deliveries
        for delivery in due {
            let order = placed.first { $0.id == delivery.orderID }
            #expect(delivery.orderID == nil || order != nil)
        }
        _ = try await test.ledger.deliveries.acknowledge(due.map(\.id), of: test.app.bundleID)
        for delivery in due where delivery.orderID != nil {
            let order = try #require(placed.first { $0.id == delivery.orderID })
            #expect(try await isPaid(order).state == .delivered)
        }
        let units = try await test.text(
            "SELECT COALESCE(sum(units), 0) FROM perennial.credit_balance WHERE customer = $1::text", [.text(customer)])
        return Ending(units: Int64(units) ?? -1, paid: paid)
    }

    /// The orders that the rule pays, and the units of what the customer owns: what a service brought, and what proofs
    /// claim of the rest.
    private static func expected(of story: PurchaseStory) -> Ending {
        let brought = story.uploads.filter { $0.way == .named || $0.way == .launch }.flatMap(\.contents)
        let orders = story.orders.enumerated().map { index, one in
            PayableOrder(
                id: "\(index)", customer: 1, productID: one.product, quantity: Int(one.quantity),
                orderedAt: .minute(one.minute), isOpen: !one.isFailed)
        }
        let known = Set(story.uploads.flatMap(\.contents)).sorted()
        let transactions = known.compactMap { index -> PayingTransaction? in
            let one = story.purchases[index]
            guard !one.isRefunded, !one.isFamilyShared else { return nil }
            let isOwned = brought.contains(index) || one.token != nil
            var paying = PayingTransaction(
                .purchase(Int64(index)), in: .production, productID: one.product, quantity: one.quantity,
                purchasedAt: .minute(one.minute), owner: isOwned ? 1 : nil)
            let sent = story.uploads.filter { $0.contents.contains(index) }
            func ids(_ some: [PurchaseStory.Brought]) -> Set<String> { Set(some.compactMap(\.order).map { "\($0)" }) }
            paying.isClaimable = !isOwned
            paying.tokenNames = one.token.map { .order("\($0)") }
            paying.accountToken = one.token.map { "\($0)" }
            paying.provedFor = ids(sent.filter { $0.way == .proof })
            paying.sentFor = ids(sent.filter { $0.way == .named })
            paying.namedFor = ids(story.uploads.filter { $0.named == index })
            return paying
        }
        let payers = matchPayments(transactions, of: orders)
        let claimed = Set(payers.map(\.bought))
        let owned = transactions.filter { $0.owner == 1 || claimed.contains($0.bought) }
        let units = owned.filter { one in
            guard one.purchasedAt >= .minute(deliveredSince) else { return false }
            return !owned.contains { twin in
                (twin.purchasedAt, twin.productID, twin.quantity) == (one.purchasedAt, one.productID, one.quantity)
                    && (twin.accountToken == nil || one.accountToken == nil || twin.accountToken == one.accountToken)
                    && twin.number < one.number
            }
        }.map { Int64($0.quantity) * ($0.productID == "coins" ? 100 : 7) }
        return Ending(units: units.reduce(0, +), paid: payers.compactMap { Int($0.orderID) }.sorted())
    }
}

extension PayingTransaction {
    fileprivate var number: Int64 {
        switch bought {
        case .purchase(let id): id
        case .period(let id, _): id
        }
    }
}

extension Instant {
    fileprivate static func minute(_ count: Int) -> Instant { Instant(milliseconds: 0) + .minutes(Int64(count)) }
}
