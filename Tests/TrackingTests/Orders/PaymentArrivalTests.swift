import Foundation
import Postgres
import SeededRandom
import TestSupport
import Testing

@testable import Subscriptions
@testable import Tracking

/// What the ledger has of one customer: what pays which order, what is delivered, and whose the purchases are.
private struct Seen {
    var payers: [String: String] = [:]
    var delivered: Set<String> = []
    var owners: [String: String] = [:]
    var claimed: Set<String> = []
    var given: Set<String> = []
    /// What the stranger was given.
    var givenToAnother: Set<String> = []
}

/// One story in one order of its steps, by a customer of its own.
private struct Play {
    let story: PurchaseStory
    let steps: [PurchaseStory.Step]
    let customer: String
    var placed: [Int: PlacedOrder] = [:]
    /// How many steps were taken.
    var taken = 0
    /// What the last one sent.
    var receipt: ReceiptID?

    var done: ArraySlice<PurchaseStory.Step> { steps[..<taken] }
    var refunded: Set<Int> {
        Set(done.compactMap { if case .refund(let one, _) = $0 { one } else { nil } })
    }

    var stranger: String { "stranger of \(customer)" }

    func id(_ purchase: Int) -> String { "\(customer)-\(purchase)" }

    /// The order whose account token Apple shows with a purchase.
    func token(of purchase: Int) -> PlacedOrder? {
        let one = story.purchases[purchase]
        let isShown = !one.isTokenLate || done.contains { if case .token(purchase, _) = $0 { true } else { false } }
        return isShown ? one.token.flatMap { placed[$0] } : nil
    }

    /// What a receipt with a proof showed, which no customer sent, while the customer had sent another one with common contents.
    private var shownBeside: Set<Int> {
        var (uploaded, found): ([[Int]], Set<Int>) = ([], [])
        for sent in done.compactMap(\.sent) {
            switch sent.way {
            case .named, .launch: uploaded.append(sent.contents)
            case .foreign: if done.contains(.merge) { uploaded.append(sent.contents) }
            case .proof:
                if uploaded.contains(where: { !Set($0).isDisjoint(with: sent.contents) }) {
                    found.formUnion(sent.contents)
                }
            }
        }
        return found
    }

    /// The orders and purchases as the rule sees them after the steps that were taken; `before` is what the ledger had
    /// before the last of them, and what was delivered by then is left out.
    func pool(_ before: Seen) -> (transactions: [PayingTransaction], orders: [PayableOrder]) {
        let sent = done.compactMap(\.sent)
        let known = Set(sent.flatMap(\.contents))
        let orders = placed.sorted { $0.key < $1.key }.filter { !before.delivered.contains($0.value.id) }.map {
            index, placed in
            let one = story.orders[index]
            var order = PayableOrder(
                id: placed.id, customer: 1, productID: one.product, quantity: Int(one.quantity),
                orderedAt: .minute(one.minute), isOpen: !one.isFailed)
            if let named = sent.last(where: { $0.order == index })?.named, !known.contains(named), !one.isFailed {
                order.awaits = TransactionID(id(named))
            }
            return order
        }
        let spent = Set(before.payers.filter { before.delivered.contains($0.key) }.values)
        let transactions = known.sorted().compactMap { index -> PayingTransaction? in
            let (one, holding) = (story.purchases[index], sent.filter { $0.contents.contains(index) })
            guard !refunded.contains(index), !one.isFamilyShared, !spent.contains(id(index)) else { return nil }
            let isMerged = done.contains(.merge)
            guard isMerged || !before.givenToAnother.contains(id(index)) else { return nil }
            let isOwn =
                before.owners[id(index)] == customer || shownBeside.contains(index) || token(of: index) != nil
                || done.last == .assignment(index)
                || holding.contains { $0.way == .named || $0.way == .launch || isMerged && $0.way == .foreign }
            var paying = PayingTransaction(
                .purchase(Int64(index)), in: .production, productID: one.product, quantity: one.quantity,
                purchasedAt: .minute(one.minute), owner: isOwn ? 1 : nil)
            func ids(_ some: [PurchaseStory.Sent]) -> Set<String> {
                Set(some.compactMap(\.order).compactMap { placed[$0]?.id })
            }
            paying.isClaimable = !isOwn
            paying.isClaimed = before.claimed.contains(id(index))
            paying.isAcknowledged = before.given.contains(id(index))
            paying.tokenNames = token(of: index).map { .order($0.id) }
            paying.accountToken = token(of: index)?.appAccountToken
            paying.provedFor = ids(holding.filter { $0.way == .proof })
            paying.sentFor = ids(holding.filter { $0.way == .named })
            paying.namedFor = ids(sent.filter { $0.named == index })
            return paying
        }
        return (transactions, orders)
    }

    /// What pays by the model, and what belongs to the customer then. What a proof claims is the customer's, so it may pay
    /// another order.
    func model(_ before: Seen) -> (payers: [String: PayingTransaction.Bought], owned: [PayingTransaction]) {
        let (transactions, orders) = pool(before)
        let claimed = Set(modelPayments(transactions, orders, isClaiming: true).values)
        let all = transactions.map { one in
            var one = one
            if one.owner == nil, claimed.contains(one.bought) || before.claimed.contains(id(Int(one.bought.number))) {
                one = one.owned(by: 1)
            }
            return one
        }
        return (modelPayments(all, orders), all.filter { $0.owner == 1 })
    }
}

extension PayingTransaction {
    /// The same after a customer claimed it by a proof.
    fileprivate func owned(by customer: Int64) -> PayingTransaction {
        var one = PayingTransaction(
            bought, in: environment, productID: productID, quantity: quantity, purchasedAt: purchasedAt, owner: customer
        )
        (one.isClaimed, one.isAcknowledged, one.accountToken, one.tokenNames) = (
            true, isAcknowledged, accountToken, tokenNames
        )
        (one.provedFor, one.sentFor, one.namedFor) = (provedFor, sentFor, namedFor)
        return one
    }
}

@Suite("The same orders are paid and the same units credited in every arrival order")
struct PaymentArrivalTests {
    /// Orders and purchases begin here, in days from now.
    private static let beginning = -2.0
    /// What was bought before this minute is not delivered.
    private static let deliveredSince = -40

    @Test("Paid orders and credited units equal a brute-force matching", arguments: 1...3 as ClosedRange<UInt64>)
    func arrivals(block: UInt64) async throws {
        try await withLedger { test in
            try await Self.sell(in: test)
            var plays: [Play] = []
            for number in 0..<10 as Range<UInt64> {
                var random = Seeded(seed: 4_000 + block * 100 + number)
                print(random)
                let story = PurchaseStory(&random)
                for (turn, steps) in story.arrivals(&random).enumerated() {
                    plays.append(Play(story: story, steps: steps, customer: "\(random.seed)-\(turn)"))
                }
            }
            let early = plays.indices.flatMap { play in
                plays[play].story.orders.indices.filter { !plays[play].story.orders[$0].isLate }.map { (play, $0) }
            }
            try await place(early, of: &plays, in: test)
            var before = try await seen(in: test)
            for turn in 0..<(plays.map(\.steps.count).max() ?? 0) {
                try await take(turn, of: &plays, in: test)
                let after = try await seen(in: test)
                for play in plays where play.taken == turn + 1 {
                    expectRule(play, before[play.customer] ?? Seen(), after[play.customer] ?? Seen())
                }
                try await expectNoneAbsent(plays.filter { $0.taken == turn + 1 }, after, in: test)
                before = after
            }
            try await expectSameEndings(plays, before, in: test)
            #expect(try await test.violations() == [])
        }
    }

    /// What pays is what the model says. Without another payer, an order keeps one that Apple took back.
    private func expectRule(_ play: Play, _ before: Seen, _ after: Seen) {
        var expected = play.model(before).payers.mapValues { play.id(Int($0.number)) }
        let takenBack = Set(play.refunded.map(play.id))
        for (order, payer) in before.payers
        where before.delivered.contains(order) || expected[order] == nil && takenBack.contains(payer) {
            expected[order] = payer
        }
        // An acknowledgement decides nothing anew.
        #expect(
            after.payers == (play.done.last == .acknowledgement ? before.payers : expected),
            "\(play.customer) after \(play.taken) of \(play.steps) with \(play.story) in \(play.placed.mapValues(\.id))"
        )
    }

    /// Without an acknowledgement between, everything is the same whatever came first, and as if it had come at once.
    private func expectSameEndings(_ plays: [Play], _ seen: [String: Seen], in test: TestLedger) async throws {
        while try await acknowledge(in: test) {}
        let balances = try await test.database.query(
            .test("SELECT customer, sum(units)::bigint AS units FROM perennial.credit_balance GROUP BY customer"))
        // Of a purchase that Apple lists twice, one is given, to whomever.
        let twice = try await test.rows(
            """
            SELECT p.transaction_id FROM perennial.delivery_log p JOIN perennial.delivery_log t
              ON t.transaction_id = p.transaction_id || 't'
            WHERE p.state = 'acknowledged' AND t.state = 'acknowledged' AND p.turn % 2 = 1 AND t.turn % 2 = 1
            """)
        #expect(twice == [])
        let units = Dictionary(
            try balances.map { (try $0.text("customer"), try $0.int8("units")) }, uniquingKeysWith: +)
        for play in plays where play.story.isOrderless {
            // What a proof claimed stays the customer's where a stronger cause takes its order.
            let owned = play.model(Seen(claimed: seen[play.customer]?.claimed ?? [])).owned
            let given = owned.filter { $0.purchasedAt >= .minute(Self.deliveredSince) }
            #expect(
                units[play.customer] ?? 0
                    == given.reduce(0) { $0 + Int64($1.quantity) * ($1.productID == "coins" ? 100 : 7) },
                "\(play.customer) \(play.steps) \(play.story)")
            let takenBack = Set(play.refunded.map(play.id))
            let paid = (seen[play.customer] ?? Seen()).payers.filter { !takenBack.contains($0.value) }.keys
            #expect(Set(paid) == Set(play.model(Seen()).payers.keys), "\(play.customer) \(play.steps) \(play.story)")
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
        while try await test.ledger.deliveries.release() {}
    }

    /// Places orders of plays, as long ago as their stories say, and lets what is stored pay them as if they were placed then.
    private func place(_ wanted: [(play: Int, order: Int)], of plays: inout [Play], in test: TestLedger) async throws {
        let asked = wanted.map { (plays[$0.play].customer, plays[$0.play].story.orders[$0.order]) }
        let placed = try await withThrowingTaskGroup(of: (Int, PlacedOrder).self) { group in
            for (number, (customer, ordered)) in asked.enumerated() {
                group.addTask {
                    var request = orderRequest(ordered.product, by: customer)
                    request.quantity = ordered.quantity
                    return (
                        number,
                        try await test.ledger.orders.place(
                            request, of: test.app.bundleID, requestKey: UUID().uuidString)
                    )
                }
            }
            return try await group.reduce(into: [Int: PlacedOrder]()) { $0[$1.0] = $1.1 }
        }
        for (number, one) in wanted.enumerated() { plays[one.play].placed[one.order] = placed[number] }
        let orders = try wanted.indices.map { (try #require(placed[$0]).id, asked[$0].1) }
        let parameters: [Parameter] = [
            .texts(orders.map(\.0)), .instants(orders.map { Self.minute($0.1.minute, in: test) }),
            .bools(orders.map(\.1.isFailed)),
        ]
        try await test.database.transaction { transaction in
            try transaction.query(
                .test(
                    """
                    UPDATE ledger.purchase_order o
                    SET created_at = n.at, state = CASE WHEN n.is_failed THEN 'failed' ELSE o.state END,
                        cause = CASE WHEN n.is_failed THEN 'device' ELSE o.cause END
                    FROM unnest($1::text[], $2::timestamptz[], $3::boolean[]) AS n(id, at, is_failed)
                    WHERE o.order_id = n.id::uuid
                    """), parameters)
            try LedgerOrders.decidePayments(of: orders.map(\.0), in: transaction)
        }
    }

    /// Takes one step of each play that has one. Uploads are settled together.
    private func take(_ turn: Int, of plays: inout [Play], in test: TestLedger) async throws {
        let moving = plays.indices.filter { plays[$0].steps.count > turn }
        for index in moving { plays[index].taken = turn + 1 }
        let sending = moving.filter { plays[$0].steps[turn].sent != nil }
        let stored = try await test.ledger.intake.store(
            sending.compactMap { index in
                plays[index].steps[turn].sent.map { upload($0, of: plays[index], in: test) }
            })
        var settlements: [Settlement] = []
        for (index, one) in zip(sending, stored) {
            plays[index].receipt = one.receiptID
            settlements.append(
                test.settlement(try await test.claim(one.receiptID), answer(plays[index], in: test)))
        }
        if !settlements.isEmpty {
            let settled = try await test.ledger.settlements.settleInFull(settlements)
            #expect(settled.failures.map(\.reason) == [])
        }
        for index in moving {
            try await decide(plays[index].steps[turn], in: plays[index], test)
        }
        try await place(
            moving.compactMap { play in plays[play].steps[turn].order.map { (play, $0) } }, of: &plays, in: test)
    }

    /// Takes a step that nobody sends.
    private func decide(_ step: PurchaseStory.Step, in play: Play, _ test: TestLedger) async throws {
        let (customers, app) = (test.ledger.customers, test.app.bundleID)
        let decision = try ManualDecision(by: "kim", because: "called")
        switch step {
        case .upload, .refund, .token, .order: break
        case .acknowledgement:
            for name in [play.customer, play.stranger] { _ = try await acknowledge(by: name, in: test) }
        case .assignment(let one):
            guard play.done.contains(where: { $0.sent?.contents.contains(one) ?? false }) else { return }
            _ = try await customers.assign(
                OriginalTransactionID(play.id(one)), to: play.customer, of: app, deciding: decision)
        case .merge:
            try await test.run(
                "INSERT INTO ledger.customer (app_id, name) VALUES (\(test.app.id), '\(play.stranger)') ON CONFLICT DO NOTHING"
            )
            _ = try await customers.merge(play.stranger, into: play.customer, of: app, deciding: decision)
        }
    }

    private func upload(_ sent: PurchaseStory.Sent, of play: Play, in test: TestLedger) -> Upload {
        let reference = sent.order.map { order in
            OrderReference(
                id: play.placed[order]?.id ?? "", isProved: sent.way == .proof,
                transactionID: sent.named.map { TransactionID(play.id($0)) })
        }
        let uploader: String? =
            switch sent.way {
            case .proof: nil
            case .named, .launch: play.customer
            case .foreign: play.stranger
            }
        return Upload(
            appID: test.app.id, customer: uploader, receipt: Array("\(play.customer) \(sent.contents)".utf8),
            imported: false, order: reference)
    }

    private func answer(_ play: Play, in test: TestLedger) -> Finding {
        let asOf = test.at(-0.5 + Double(play.taken) / 1_000)
        let contents = play.done.last?.sent?.contents ?? []
        let rows = contents.flatMap { index -> [TransactionRow] in
            let one = play.story.purchases[index]
            let (copy, first) = (play.done.last?.sent?.copies[index], Self.minute(one.minute, in: test))
            return (one.hasTwin ? ["", "t"] : [""]).map { twin in
                var row = TransactionRow(
                    path: "latest_receipt_info[\(index)]", source: .latestReceiptInfo, asOf: asOf,
                    transactionID: TransactionID(play.id(index) + (copy == .restored ? "r" : twin)),
                    originalTransactionID: OriginalTransactionID(play.id(index) + twin), productID: one.product,
                    quantity: one.quantity, purchasedAt: copy == nil ? first : asOf - .minutes(1),
                    cancelledAt: play.refunded.contains(index) ? test.at(-1) : nil)
                row.originalPurchasedAt = copy == nil ? nil : first
                row.ownership = one.isFamilyShared ? .familyShared : .purchased
                row.appAccountToken = twin.isEmpty ? play.token(of: index)?.appAccountToken : nil
                return row
            }
        }
        return .verified(
            Evidence(environment: .production, bundleID: "com.example.app", asOf: asOf, transactions: rows))
    }

    /// Acknowledges what is due of a customer, or of all; returns whether something was.
    private func acknowledge(by customer: String? = nil, in test: TestLedger) async throws -> Bool {
        let due = try await test.ledger.deliveries.read(
            of: test.app.bundleID, state: .due, customer: customer, after: 0, limit: 1_000
        ).deliveries
        _ = try await test.ledger.deliveries.acknowledge(due.map(\.id), of: test.app.bundleID)
        return !due.isEmpty
    }

    private func seen(in test: TestLedger) async throws -> [String: Seen] {
        var all: [String: Seen] = [:]
        let orders = try await test.database.query(
            .test(
                """
                SELECT c.name, o.order_id::text AS order_id, p.original_transaction_id AS transaction_id,
                       o.state IN ('delivered', 'refunded') AS is_over
                FROM ledger.purchase_order o JOIN ledger.customer c USING (customer_id)
                JOIN ledger.purchase p USING (purchase_id)
                """))
        for row in orders {
            let (name, order) = (try row.text("name"), try row.text("order_id"))
            all[name, default: Seen()].payers[order] = try row.text("transaction_id")
            if try row.bool("is_over") { all[name, default: Seen()].delivered.insert(order) }
        }
        let purchases = try await test.database.query(
            .test(
                """
                SELECT c.name, p.original_transaction_id AS transaction_id, o.cause IS NOT DISTINCT FROM 'proof' AS is_claimed,
                       EXISTS (
                           SELECT FROM ledger.delivery_now d
                           WHERE d.purchase_id = p.purchase_id AND d.state = 'acknowledged') AS is_given,
                       EXISTS (
                           SELECT FROM ledger.delivery_now d JOIN ledger.customer s USING (customer_id)
                           WHERE d.purchase_id = p.purchase_id AND d.state = 'acknowledged'
                             AND s.merged_into IS NULL AND s.name LIKE 'stranger of %') AS is_strangers
                FROM ledger.purchase p
                JOIN ledger.ownership o ON o.purchase_id = p.purchase_id AND upper_inf(o.known) AND upper_inf(o.valid)
                JOIN ledger.customer c ON c.customer_id = o.customer_id
                """))
        for row in purchases {
            let (name, id) = (try row.text("name"), try row.text("transaction_id"))
            all[name, default: Seen()].owners[id] = name
            if try row.bool("is_claimed") { all[name, default: Seen()].claimed.insert(id) }
            if try row.bool("is_given") { all[name, default: Seen()].given.insert(id) }
            guard try row.bool("is_strangers"), let end = id.lastIndex(of: "-") else { continue }
            all[String(id[..<end]), default: Seen()].givenToAnother.insert(id)
        }
        return all
    }

    /// A device hears `absent` only where nothing of its customer is free to pay the order.
    private func expectNoneAbsent(_ plays: [Play], _ seen: [String: Seen], in test: TestLedger) async throws {
        for play in plays {
            guard let sent = play.done.last?.sent, let index = sent.order, let receipt = play.receipt else { continue }
            let placed = try #require(play.placed[index])
            let order = try #require(try await test.ledger.orders.read(placed.id, of: test.app.bundleID))
            // What the caller names decides alone.
            guard order.transactionID == nil, sent.named == nil else { continue }
            let contents = try await test.ledger.intake.purchases(in: receipt, for: play.customer)
            guard case .nothing = contents.fit(for: order) else { continue }
            let free = contents.items.filter { item in
                item.productID == order.productID && item.quantity == order.quantity && item.isInTime(for: order)
                    && item.isOwned && !item.isRevoked && item.orderID == nil
                    && item.tokenOrderID == nil && !item.isOfAnother
                    // What was carried out before the order pays it no more.
                    && !(item.purchasedAt < order.createdAt
                        && seen[play.customer]?.given.contains(item.originalTransactionID.text) == true)
            }
            #expect(free == [], "\(play.customer) hears absent about \(order) although \(free) is unpaid")
        }
    }
}

extension Instant {
    fileprivate static func minute(_ count: Int) -> Instant { Instant(milliseconds: 0) + .minutes(Int64(count)) }
}
