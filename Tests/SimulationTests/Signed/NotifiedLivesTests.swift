import Foundation
import Postgres
import SeededRandom
import Subscriptions
import Testing
import Tracking

@testable import AppStoreSimulator

/// Lives whose notifications come late, twice, in any order or not at all, while Apple's answers lag behind them. Among them
/// are customers who come back after their receipts have retired, and customers with orders, and others send their receipts.
@Suite("Once no question is left, the ledger tells the truth, whatever became of the notifications")
struct NotifiedLivesTests {
    @Test(
        "A hundred random lives on each channel", .timeLimit(.minutes(6)),
        arguments: [Verifier.verifyReceipt, .serverAPI])
    func few(_ verifier: Verifier) async throws {
        try await live(verifier, lives: 100, seed: 20_261_134)
    }

    @Test(
        "Five thousand random lives on each channel", .timeLimit(.minutes(120)),
        .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"),
        arguments: [Verifier.verifyReceipt, .serverAPI])
    func many(_ verifier: Verifier) async throws {
        for round in 0..<25 { try await live(verifier, lives: 200, seed: 20_261_200 + UInt64(round)) }
    }

    private func live(_ verifier: Verifier, lives: Int, seed: UInt64) async throws {
        try await PretendWorld.with(seed: seed, customers: lives * 8 / 10, sandboxCustomers: 0, monthSeconds: 6) {
            world in
            try await world.tracker.ledger.apps.change(world.bundleID, .verifying(by: verifier))
            var guests = try await Guests(in: world, count: lives / 10)
            for channel in StoreChannel.allCases {
                var lag = Lag(seconds: 0.4)
                (lag.channel, lag.share) = (channel, 0.5)
                world.simulator.add(lag)
            }
            try await world.pointAtEveryThird()
            var post = try await CarelessPost(world, seed: seed)
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
            let notified = world.simulator.truth().map(\.customer).filter { !post.lost.contains($0) }
            #expect(notified.count > lives / 2)
            try await world.tracker.ledger.feed.sequence()
            try await AgreementTests.expectAgreement(in: world, of: Set(notified), renewalsMin: lives / 2)
            try await guests.expectOrders(of: Set(notified))
            try await world.expectNoViolations()
        }
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
/// pay. Of every second one a stranger sends the receipt first.
private struct Guests {
    private let world: PretendWorld
    private let returning: [String]
    private let buyers: [String]
    private var orders: [(id: String, customer: String, account: String)] = []
    private var boughtAfter: Duration?
    private var refunded: Set<String> = []

    init(in world: PretendWorld, count: Int) async throws {
        var coins = CatalogProduct(id: Self.coins, kind: .consumable, entitlements: [])
        coins.credit = CatalogProduct.Credit(name: "coins", units: 100)
        coins.deliversSince = Instant(milliseconds: world.simulator.epochMilliseconds - 86_400_000)
        try await world.tracker.ledger.apps.applyCatalog([coins], to: world.bundleID)
        var ended = ScriptKind.cancels.script
        ended.pastPeriods = 16
        let gone = (0..<count).map { _ in world.simulator.createCustomer(ended) }
        self.world = world
        returning = gone.map(\.customer)
        buyers = (0..<count).map { _ in world.simulator.createCustomer(ScriptKind.newcomer.script).customer }
        for (index, customer) in gone.enumerated() {
            if index % 2 == 0 { try await send(customer.receipt, by: "stranger of \(customer.customer)") }
            try await send(customer.receipt, by: customer.customer)
        }
    }

    private static let coins: ProductID = "com.example.tracker.coins"

    private func send(_ receipt: String, by customer: String) async throws {
        let submission = Submission(
            bundleID: world.bundleID, customer: customer, subject: .receipt(receipt), imported: false)
        for result in try await world.tracker.store([submission]) { _ = try result.get() }
    }

    /// Once their receipts have retired they come back, and others buy; later Apple refunds some of what is known.
    mutating func live(for time: Duration) async throws {
        if orders.isEmpty, time > .seconds(3) {
            let retired = try await world.number(
                "SELECT count(*) FROM ledger.subscription WHERE polled_by IS NOT NULL AND next_check_at IS NULL")
            guard retired >= returning.count || time > .seconds(8) else { return }
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
        let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
        let rows = try await database.query(Statement(name: "rows", sql: sql))
        await database.close()
        return try rows.map { try $0.text("line") }
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
