import Foundation
import Postgres
import SeededRandom
import Subscriptions
import Testing
import Tracking

@testable import AppStoreSimulator

/// Lives whose notifications come late, twice, in any order or not at all, while Apple's answers lag behind them. Among them
/// are customers who come back after their receipts have retired, and customers with orders, and others send their receipts
/// before them.
@Suite("Once no question is left, the ledger tells the truth, whatever became of the notifications")
struct NotifiedLivesTests {
    /// How far answers lag: less than the follow-ups reach, which are a quarter of a second apart here.
    private static let lagSeconds = 0.4

    @Test(
        "Seventy random lives on each channel, and on both", .timeLimit(.minutes(6)), arguments: Verifier.allCases)
    func few(_ verifier: Verifier) async throws {
        try await live(verifier, lives: 70, seed: 20_261_134)
    }

    @Test(
        "3,360 random lives on each channel, and on both", .timeLimit(.minutes(120)),
        .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"),
        arguments: Verifier.allCases)
    func many(_ verifier: Verifier) async throws {
        var takenBack = 0
        for round in 0..<48 { takenBack += try await live(verifier, lives: 70, seed: 20_261_200 + UInt64(round)) }
        #expect(takenBack > 48, "this would prove little")
    }

    /// Returns how many finished consumables of notified accounts were given and taken back.
    @discardableResult
    private func live(_ verifier: Verifier, lives: Int, seed: UInt64) async throws -> Int {
        var takenBack = 0
        var options = SimulatorOptions(seed: seed)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (lives * 8 / 10, 0, 6)
        options.traits.coins = 0.6
        try await PretendWorld.with(options) { world in
            try await world.tracker.ledger.apps.change(world.bundleID, .verifying(by: verifier))
            var guests = try await Guests(in: world, count: lives / 10)
            for channel in StoreChannel.allCases {
                var lag = Lag(seconds: Self.lagSeconds)
                (lag.channel, lag.share) = (channel, 0.5)
                world.simulator.add(lag)
            }
            try await world.pointAtEveryThird()
            var post = try await CarelessPost(world, seed: seed)
            let notifiedSince = world.clock.simulatorClock.milliseconds()
            let doomed = try await world.tracker.ledger.claims.startWorker(host: "doomed", process: 1)
            var random = Seeded(seed: seed &+ 1)
            async let worked: Void = world.work(seconds: 12)
            let start = ContinuousClock.now
            while ContinuousClock.now < start + .seconds(12) {
                try await post.deliver()
                try await guests.live(for: ContinuousClock.now - start)
                let lane = [Lane.expiring, .retry, .sweep].randomElement(using: &random) ?? .sweep
                if Bool.random(using: &random) { try await world.die(as: doomed, in: lane) }
                try await Task.sleep(for: .milliseconds(150))
            }
            try await worked
            world.clock.stop()
            world.simulator.clearLags()
            repeat {
                try await post.deliverAll()
                try await world.work(seconds: 1)
            } while try await world.hasQuestions(steppingTo: world.clock)
            print("notifications: \(try await world.notificationCounts()), lost: \(post.lost.count) customers")
            let notified = Set(world.simulator.truth().map(\.customer)).subtracting(post.lost)
            #expect(notified.count > lives / 2)
            try await world.tracker.ledger.feed.sequence()
            try await AgreementTests.expectAgreement(
                in: world, of: notified, renewalsMin: lives / 2, lagMilliseconds: Int64(1_000 * Self.lagSeconds))
            try await guests.expectOrders(of: notified)
            try await world.acknowledgeAll()
            takenBack = try await world.expectPurchases(
                of: notified.subtracting(guests.buyers), notifiedSince: notifiedSince)
            try await world.expectPeriodsDelivered(to: notified)
            try await world.expectNoViolations()
        }
        return takenBack
    }
}

extension PretendWorld {
    /// A stranger names transactions of others before anybody is asked about.
    fileprivate func pointAtEveryThird() async throws {
        let ids = try simulator.signedTransactions().filter { $0.environment == .production }.map(\.transactionID)
        let pointers = ids.enumerated().filter { $0.offset % 3 == 0 }.map {
            Submission(bundleID: bundleID, customer: "stranger", subject: .transactionID($0.element), imported: true)
        }
        for result in try await tracker.store(pointers) { _ = try result.get() }
    }

    /// Acknowledges what was given, so that what a refund takes back is due.
    fileprivate func acknowledgeAll() async throws {
        let due = try await rows("SELECT delivery_id FROM ledger.delivery WHERE turn = 1").map {
            try $0.int8("delivery_id")
        }
        for start in stride(from: 0, to: due.count, by: 500) {
            _ = try await tracker.ledger.deliveries.acknowledge(Array(due[start...].prefix(500)), of: bundleID)
        }
    }

    /// Expects that each period of notified accounts was given to its customer, but for what was taken back.
    fileprivate func expectPeriodsDelivered(to notified: Set<String>) async throws {
        let held = Dictionary(
            try await rows(
                """
                SELECT original_transaction_id AS id, count(*) AS periods, string_agg(DISTINCT customer, ' ') AS customers
                FROM (SELECT DISTINCT ON (original_transaction_id, transaction_id) *
                      FROM perennial.delivery_log WHERE kind = 'auto_renewable'
                      ORDER BY original_transaction_id, transaction_id, turn DESC) last
                WHERE turn % 2 = 1 AND state <> 'skipped' GROUP BY 1
                """
            ).map { (try $0.text("id"), (periods: Int(try $0.int8("periods")), customers: try $0.text("customers"))) }
        ) { first, _ in first }
        var periods = 0
        for account in simulator.truth()
        where notified.contains(account.customer) && !account.accountDeleted && !account.hasLegacyReceipts {
            for truth in account.subscriptions where truth.ownership == "PURCHASED" && truth.renewalSeats == nil {
                let id = truth.originalTransactionID
                let bought = account.deliveries.filter { $0.kind == .subscription && $0.originalTransactionID == id }
                // A refund that was taken back is given once what it took is acknowledged.
                let (fewest, most) = (bought.count { $0.refunds.isEmpty }, bought.count { $0.refunded == nil })
                let given = held[id] ?? (0, account.customer)
                #expect((fewest...most).contains(given.periods), "periods of \(id) given: \(bought)")
                #expect(given.customers == account.customer, "to whom periods of \(id) were given")
                periods += given.periods
            }
        }
        print("periods given: \(periods)")
        #expect(periods > notified.count, "this would prove little")
    }

    /// Expects that each one-time purchase of notified accounts is its customer's, that a refund shows, and that coins were given
    /// once, and taken back with a refund that the ledger did not know before.
    fileprivate func expectPurchases(of notified: Set<String>, notifiedSince: Int64) async throws -> Int {
        let owners = Dictionary(
            try await rows(
                """
                SELECT p.original_transaction_id AS id, concat_ws(' ', p.customer, CASE WHEN p.revoked_at IS NOT NULL THEN 'revoked' END) AS line
                FROM perennial.purchase_now p
                """
            ).map { (try $0.text("id"), try $0.text("line")) }
        ) { first, _ in first }
        let given = Dictionary(
            try await rows(
                """
                SELECT d.original_transaction_id AS id, string_agg(concat_ws(' ', d.turn, d.customer, d.units), ', ' ORDER BY d.turn) AS line
                FROM perennial.delivery_log d GROUP BY 1
                """
            ).map { (try $0.text("id"), try $0.text("line")) }
        ) { first, _ in first }
        var (coins, takenBack) = (0, 0)
        for account in simulator.truth() where notified.contains(account.customer) && !account.accountDeleted {
            for bought in account.deliveries where bought.kind != .subscription && account.environment == .production {
                guard bought.isListed || bought.booked > notifiedSince else { continue }
                let (id, isRefunded) = (bought.originalTransactionID, bought.refunded != nil)
                #expect(
                    owners[id] == account.customer + (isRefunded ? " revoked" : ""),
                    "\(bought.product) \(id), booked \(bought.booked), finished \(bought.finished ?? 0)")
                guard bought.kind == .consumable else { continue }
                coins += 1
                takenBack += isRefunded && given[id] != nil ? 1 : 0
                let units = " \(account.customer) \(bought.quantity * 100)"
                let turns = isRefunded ? [nil, "1\(units), 2\(units)"] : ["1\(units)"]
                #expect(turns.contains(given[id]), "\(id) gave \(given[id] ?? "nothing")")
            }
        }
        print("coins of notified accounts: \(coins), given and taken back: \(takenBack)")
        #expect(coins > notified.count / 4, "this would prove little")
        return takenBack
    }

    fileprivate func rows(_ sql: String) async throws -> [Row] {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print($0) }
        let rows = try await database.query(Statement(name: "rows", sql: sql))
        await database.close()
        return rows
    }

    /// A worker claims one receipt of a lane, and dies.
    fileprivate func die(as worker: WorkerID, in lane: Lane) async throws {
        let app = try await tracker.ledger.apps.app(bundleID)
        _ = try await tracker.ledger.claims.claim(
            for: worker, [Quota(app: app, lane: lane, receipts: 1)], leaseSeconds: 0.3)
    }

    /// Whether a notification waits for an answer, or something that Apple took back for a second one. Then a moment passes.
    fileprivate func hasQuestions(steppingTo clock: StoppableClock) async throws -> Bool {
        let left = try await number(
            """
            SELECT (SELECT count(*) FROM ledger.notification WHERE effect = 'asked')
                 + (SELECT count(*) FROM ledger.subscription WHERE suspected IS NOT NULL AND next_check_at IS NOT NULL)
                 + (SELECT count(*) FROM ledger.purchase WHERE facts ? 'refund_retracted_at_ms' AND next_check_at IS NOT NULL)
            """)
        if left > 0 { clock.step() }
        return left > 0
    }
}

/// Customers who come back more than a year after the end of their subscriptions, and customers whose orders others' accounts
/// pay. Of every second one a stranger sends the receipt first, and Apple is asked before its customer does.
private struct Guests {
    private let world: PretendWorld
    private let returning: [String]
    /// Of the accounts that pay orders, the customers.
    let buyers: [String]
    /// The receipts whose customers come later than a stranger.
    private var late: [(customer: String, receipt: String)] = []
    private var orders: [(id: String, customer: String, account: String)] = []
    private var boughtAfter: Duration?
    private var refunded: Set<String> = []

    init(in world: PretendWorld, count: Int) async throws {
        var coins = CatalogProduct(id: Self.coins, kind: .consumable, entitlements: [])
        coins.credit = CatalogProduct.Credit(name: "coins", units: 100)
        let since = Instant(milliseconds: world.simulator.epochMilliseconds - 86_400_000)
        coins.deliversSince = since
        let subscriptions = SubscriptionProduct.allCases.map { product in
            let id = "com.example.tracker.\(product.rawValue)"
            var product = CatalogProduct(id: ProductID(id), kind: .autoRenewable, entitlements: [id])
            product.deliversSince = since
            return product
        }
        try await world.tracker.ledger.apps.applyCatalog([coins] + subscriptions, to: world.bundleID)
        var ended = ScriptKind.cancels.script
        ended.pastPeriods = 16
        let gone = (0..<count).map { _ in world.simulator.createCustomer(ended) }
        self.world = world
        returning = gone.map(\.customer)
        buyers = (0..<count).map { _ in world.simulator.createCustomer(ScriptKind.newcomer.script).customer }
        for (index, customer) in gone.enumerated() {
            if index % 2 == 0 { late.append((customer.customer, customer.receipt)) }
            let sender = index % 2 == 0 ? "stranger of \(customer.customer)" : customer.customer
            try await send(customer.receipt, by: sender)
        }
    }

    private static let coins: ProductID = "com.example.tracker.coins"

    private func send(_ receipt: String, by customer: String) async throws {
        let submission = Submission(
            bundleID: world.bundleID, customer: customer, subject: .receipt(receipt), imported: false)
        for result in try await world.tracker.store([submission]) { _ = try result.get() }
        // Uploads wait some seconds for the process that stored them, and here none asks.
        try await world.run(
            """
            UPDATE ledger.poll_schedule SET due_at = now(), scheduled_for = now()
            WHERE leased_by IS NULL AND lane = 'new' AND due_at > now()
            """)
    }

    /// Once their receipts have retired they come back, and others buy; later Apple refunds some of what is known.
    mutating func live(for time: Duration) async throws {
        if !late.isEmpty, time > .seconds(1) {
            let strangers = try await world.number(
                "SELECT count(*) FROM ledger.customer c JOIN ledger.ownership o USING (customer_id) WHERE c.name LIKE 'stranger of %'"
            )
            guard strangers >= late.count || time > .seconds(8) else { return }
            #expect(strangers > 0, "no stranger came first; this test would prove little")
            for customer in late { try await send(customer.receipt, by: customer.customer) }
            late = []
        }
        if orders.isEmpty, time > .seconds(3) {
            let retired = try await world.number(
                "SELECT count(*) FROM ledger.subscription WHERE polled_by IS NOT NULL AND next_check_at IS NULL")
            guard retired >= returning.count || time > .seconds(9) else { return }
            #expect(retired > 0, "no customer came back; this test would prove little")
            for customer in returning { _ = try world.simulator.perform(CustomerAction(.resubscribe), on: customer) }
            for (index, account) in buyers.enumerated() { try await buy(account, isShown: index % 2 == 0) }
            boughtAfter = time
        } else if let boughtAfter, refunded.isEmpty, time > boughtAfter + .seconds(2) {
            // What is refunded at first sight gives nothing.
            let known = try await rows("SELECT order_id::text AS line FROM ledger.delivery WHERE order_id IS NOT NULL")
            for order in orders.filter({ known.contains($0.id) }).prefix(orders.count / 3) {
                _ = try world.simulator.perform(CustomerAction(.refundPurchase), on: order.account)
                refunded.insert(order.id)
            }
        }
    }

    /// An account pays an order of another customer; a stranger may send its receipt.
    private mutating func buy(_ account: String, isShown: Bool) async throws {
        let request = OrderRequest(customer: "orderer of \(account)", productID: Self.coins)
        let placed = try await world.tracker.ledger.orders.place(request, of: world.bundleID, requestKey: account)
        var payment = CustomerAction(.buy)
        payment.accountToken = AccountToken(placed.appAccountToken)
        _ = try world.simulator.perform(payment, on: account)
        orders.append((placed.id, request.customer, account))
        let receipt = try #require(world.simulator.latestReceipt(of: account))
        if isShown { try await send(receipt, by: "stranger of \(account)") }
    }

    /// Expects that each order of notified accounts was paid by its own transaction, and that what it gave, and what its refund
    /// takes back, is of its customer.
    func expectOrders(of notified: Set<String>) async throws {
        let deliveries = try await rows(
            "SELECT delivery_id::text AS line FROM ledger.delivery WHERE order_id IS NOT NULL")
        _ = try await world.tracker.ledger.deliveries.acknowledge(
            deliveries.compactMap { Int64($0) }, of: world.bundleID)
        let lines = Set(
            try await rows(
                """
                SELECT concat_ws(' ', o.order_id, o.state, (
                    SELECT string_agg(concat_ws(' ', d.turn, c.name, d.units), ', ' ORDER BY d.turn)
                    FROM ledger.delivery d JOIN ledger.customer c USING (customer_id) WHERE d.order_id = o.order_id)) AS line
                FROM ledger.purchase_order o
                """))
        let known = orders.filter { notified.contains($0.account) }
        #expect(known.count > orders.count / 2)
        for order in known {
            let end = refunded.contains(order.id) ? ", 2 \(order.customer) 100" : ""
            let expected = "\(order.id) delivered 1 \(order.customer) 100\(end)"
            #expect(lines.contains(expected), "of \(lines.filter { $0.hasPrefix(order.id) })")
        }
    }

    private func rows(_ sql: String) async throws -> [String] {
        try await world.rows(sql).map { try $0.text("line") }
    }
}

/// Carries notifications to the ledger: some at once, some twice, some much later, some never.
private struct CarelessPost {
    private let world: PretendWorld
    private let app: NotifiedApp
    private var random: Seeded
    private var next = 0
    private var held: [String] = []
    /// The customers about whom something was lost.
    private(set) var lost: Set<String> = []

    init(_ world: PretendWorld, seed: UInt64) async throws {
        // The store makes notifications, and sends none itself.
        var options = NotificationOptions(url: "http://127.0.0.1:9/")
        options.shareDropped = 1
        world.simulator.notify(options)
        let ledger = world.tracker.ledger
        let token = try await ledger.apps.openNotifications(of: world.bundleID)
        (self.world, app) = (world, try #require(try await ledger.apps.notifiedApp(at: token)))
        random = Seeded(seed: seed)
    }

    /// Takes what the store made since the last time, and delivers a part of what is held.
    mutating func deliver() async throws {
        try collect()
        var rest: [String] = []
        for text in held.shuffled(using: &random) {
            if Int.random(in: 0..<3, using: &random) == 0 { try await hand(text) } else { rest.append(text) }
        }
        held = rest
    }

    /// Delivers everything.
    mutating func deliverAll() async throws {
        try collect()
        for text in held.shuffled(using: &random) { try await hand(text) }
        held = []
    }

    private mutating func collect() throws {
        world.simulator.collectNotifications()
        for made in world.simulator.notifications.made(from: next) {
            next = made.sequence + 1
            let text = try world.simulator.signedPayload(of: made)
            switch Int.random(in: 0..<40, using: &random) {
            case 0:
                if let account = made.occasion.account {
                    lost.formUnion([CustomerName.first(account), CustomerName.second(account)])
                }
            case 1..<10: held += [text, text]
            default: held.append(text)
            }
        }
    }

    private func hand(_ text: String) async throws {
        guard case .verified(let notification) = try await world.tracker.receive(Array(text.utf8), for: app) else {
            Issue.record("a genuine notification is not verified")
            return
        }
        _ = try await world.tracker.ledger.intake.keep(notification, for: app)
    }
}
