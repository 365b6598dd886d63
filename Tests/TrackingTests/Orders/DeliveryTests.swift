import Foundation
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("What was bought is delivered once, and taken back once")
struct DeliveryTests {
    @Test("A consumable gives its units, its refund takes them back, and its reversal gives them again")
    func turns() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let due = "SELECT position, turn, units, balance FROM perennial.delivery_due"
            try await test.buys("p", quantity: 3)
            try await test.expectRows(due, [[nil, 1, 300, nil]])
            #expect(try await test.deliveries() == ["1 purchase due ann 300"])
            try await test.buys("p", quantity: 3, asOf: -0.9)
            try await test.acknowledgeAll()
            #expect(try await test.text("SELECT units FROM perennial.credit_balance") == "300")
            try await test.expectRows(due, [])
            try await test.buys("p", quantity: 3, asOf: -0.8, refunded: -0.85)
            #expect(try await test.deliveries() == ["1 purchase acknowledged ann 300", "2 refund due ann 300"])
            try await test.expectRows(due, [[2, 2, 300, 300]])
            // The reversal waits for the acknowledgement of what came before.
            for asked in [-0.7, -0.6] { try await test.buys("p", quantity: 3, asOf: asked) }
            #expect(try await test.deliveries().count == 2)
            try await test.acknowledgeAll()
            #expect(try await test.deliveries().last == "3 refund_reversed due ann 300")
            try await test.acknowledgeAll()
            #expect(try await test.text("SELECT units FROM perennial.credit_balance") == "300")
        }
    }

    @Test("One answer that lags behind a refund makes no turn after one that was acknowledged")
    func lagging() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            try await test.acknowledgeAll()
            try await test.buys("p", asOf: -0.8, refunded: -0.85)
            try await test.acknowledgeAll()
            let turns = ["1 purchase acknowledged ann 100", "2 refund acknowledged ann 100"]
            try await test.buys("p", asOf: -0.7)
            #expect(try await test.deliveries() == turns)
            try await test.buys("p", asOf: -0.6, refunded: -0.85)
            #expect(try await test.deliveries() == turns)
        }
    }

    @Test("A refund before the acknowledgement is taken back after it; what was refunded whole before is not given")
    func refunds() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            try await test.buys("p", asOf: -0.8, refunded: -0.9)
            try await test.buys("q", refunded: -1.5)
            #expect(try await test.deliveries() == ["1 purchase due ann 100"])
            try await test.acknowledgeAll()
            #expect(try await test.deliveries() == ["1 purchase acknowledged ann 100", "2 refund due ann 100"])
        }
    }

    @Test(
        "What an upgraded period gave is taken back where Apple refunds the rest of its price, and not by the upgrade")
    func restRefund() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let receipt = try await test.upload("a")
            func tell(_ asOf: Double, upgraded: Bool, refundedAt: Double? = nil, percentage: Int? = nil) async throws {
                var evidence = Answer(from: test.at(-20), asOf: test.at(asOf)).evidence
                var next = evidence.transactions[0]
                (next.transactionID, next.webOrderLineItemID, next.productID) = ("yearly", "yearly", "yearly")
                (next.purchasedAt, next.expiresAt) = (test.at(-10), test.at(355))
                evidence.transactions[0].isUpgraded = upgraded
                evidence.transactions[0].cancelledAt = refundedAt.map(test.at)
                evidence.transactions[0].revocationPercentage = percentage
                if upgraded { evidence.transactions.append(next) }
                try await test.check(receipt, .verified(evidence))
            }
            try await tell(-19, upgraded: false)
            #expect(try await test.deliveries() == ["1 purchase due ann"])
            try await test.acknowledgeAll()
            let given = ["1 purchase acknowledged ann"]
            for percentage in [66_000, 100_000] {
                try await tell(
                    -9 + Double(percentage) / 1_000_000, upgraded: true, refundedAt: -10, percentage: percentage)
                #expect(try await test.deliveries() == given, "the replacement's repayment")
            }
            try await tell(-5, upgraded: true, refundedAt: -6, percentage: 50_000)
            #expect(try await test.deliveries() == given)
            try await tell(-4, upgraded: true, refundedAt: -6, percentage: 100_000)
            #expect(try await test.deliveries() == given + ["2 refund due ann"])
            #expect(try await test.violations() == [])
            try await test.acknowledgeAll()
            #expect(try await test.violations() == [])
        }
    }

    @Test("Nothing that was bought before a product got its kind is delivered, unless no catalog had named it")
    func since() async throws {
        try await withLedger { test in
            try await test.sell([CatalogProduct(id: "themes", entitlements: ["themes"])])
            try await test.buys("old", "themes")
            try await test.buys("never named", "coins", days: -0.1, asOf: -0.05)
            try await test.buys("history", "coins", days: -50, asOf: -0.05)
            var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
            coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
            let themes = CatalogProduct(id: "themes", kind: .nonConsumable, entitlements: ["themes"])
            try await test.sell([themes, coins])
            #expect(try await test.deliveries() == [])
            while try await test.ledger.deliveries.release() {}
            #expect(try await test.deliveries() == ["1 purchase due ann 100"])
            // A stated instant releases what was bought since.
            coins.deliversSince = test.at(-60)
            try await test.sell([themes, coins])
            while try await test.ledger.deliveries.release() {}
            #expect(try await test.deliveries() == ["1 purchase due ann 100", "1 purchase due ann 100"])
            try await test.buys("new", "themes", days: 0.01, asOf: 0.02)
            #expect(try await test.deliveries().last == "1 purchase due ann")
        }
    }

    @Test("The same purchase under another id is a possible duplicate, in one answer and in two")
    func duplicates() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p", quantity: 2)
            try await test.buys("q", quantity: 2)
            try await test.buys("r", quantity: 1)
            try await test.buys("s", quantity: 2, by: "bob")
            #expect(
                try await test.deliveries() == [
                    "1 purchase due ann 200", "1 purchase possible_duplicate ann 200", "1 purchase due ann 100",
                    "1 purchase due bob 200",
                ])
            // A refund of what was never given takes nothing back.
            try await test.buys("q", quantity: 2, asOf: -0.5, refunded: -0.6)
            #expect(try await test.deliveries().count == 4)
        }
    }

    @Test("What carries an account token is no possible duplicate and makes none, in one answer and in two")
    func twins() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            func answer(_ tokens: [String: String], asOf: Double) -> Finding {
                guard case .verified(var evidence) = test.bought(tokens.keys.sorted().map { ($0, "coins") }, asOf: asOf)
                else { return outage }
                for index in evidence.transactions.indices {
                    evidence.transactions[index].appAccountToken =
                        tokens[evidence.transactions[index].transactionID.text]
                }
                return .verified(evidence)
            }
            let receipt = try await test.upload("a")
            let (one, two, three) = (UUID().uuidString, UUID().uuidString, UUID().uuidString)
            try await test.check(receipt, answer(["p": one, "q": two, "r": two], asOf: -1))
            let due = "1 purchase due ann 100"
            #expect(try await test.deliveries() == [due, due, due])
            try await test.check(receipt, answer(["p": one, "s": three, "t": one.lowercased()], asOf: -0.9))
            #expect(try await test.deliveries() == [due, due, due, due, due])
            try await test.check(receipt, test.bought([("u", "coins"), ("v", "coins")], asOf: -0.8))
            #expect(
                try await test.deliveries()
                    == [due, due, due, due, due, due, "1 purchase possible_duplicate ann 100"])
        }
    }

    @Test("A token that is learnt by one receipt gives what another one showed and was skipped beside it")
    func twinsApart() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let (first, second) = (try await test.upload("a"), try await test.upload("b"))
            try await test.check(first, test.bought([("p", "coins")]))
            try await test.check(second, test.bought([("q", "coins")], asOf: -0.9))
            let (due, skipped) = ("1 purchase due ann 100", "1 purchase possible_duplicate ann 100")
            #expect(try await test.deliveries() == [due, skipped])
            try await test.check(first, test.bought([("p", "coins")], asOf: -0.8).carrying(UUID().uuidString))
            #expect(
                try await test.deliveries()
                    == [due, skipped, "2 transfer possible_duplicate ann 100", "3 purchase due ann 100"])
            #expect(try await test.violations() == [])
        }
    }

    @Test("A non-consumable moves with its receipt by two turns; what is used up or runs stays")
    func transfers() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            for product in ["themes", "coins", "season"] as [ProductID] {
                try await test.buys(product.text, product)
                try await test.acknowledgeAll()
                try await test.buys(product.text, product, by: "bob", asOf: -0.9)
            }
            #expect(
                try await test.deliveries().sorted()
                    == [
                        "1 purchase acknowledged ann", "2 transfer acknowledged ann", "3 transfer acknowledged bob",
                        "1 purchase acknowledged ann 100", "1 purchase acknowledged ann",
                    ].sorted())
        }
    }

    @Test("A merge and a split move what was delivered without turns")
    func merges() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p", by: "anon")
            try await test.buys("t", "themes", by: "anon")
            try await test.acknowledgeAll()
            let decision = try ManualDecision(by: "kim", because: "logged in")
            _ = try await test.ledger.customers.merge(
                "anon", into: "ann", of: test.app.bundleID, deciding: decision)
            let moved = ["1 purchase acknowledged ann 100", "1 purchase acknowledged ann"]
            #expect(try await test.deliveries() == moved)
            #expect(try await test.text("SELECT customer || units FROM perennial.credit_balance") == "ann100")
            _ = try await test.ledger.customers.split("anon", of: test.app.bundleID, deciding: decision)
            #expect(
                try await test.deliveries() == ["1 purchase acknowledged anon 100", "1 purchase acknowledged anon"])
        }
    }

    @Test("What a merged name got before another customer had it is shown under the name that it means now")
    func mergedAfterTransfer() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("t", "themes", by: "anon")
            try await test.acknowledgeAll()
            try await test.buys("t", "themes", by: "bob", asOf: -0.9)
            try await test.acknowledgeAll()
            _ = try await test.ledger.customers.merge(
                "anon", into: "ann", of: test.app.bundleID,
                deciding: try ManualDecision(by: "kim", because: "logged in"))
            let shown = [
                "1 purchase acknowledged ann", "2 transfer acknowledged ann", "3 transfer due bob",
            ]
            #expect(try await test.deliveries() == shown)
            let anyName = try await test.ledger.deliveries.read(
                of: test.app.bundleID, customer: "anon", after: 0, limit: 10)
            #expect(anyName.deliveries.map(\.customer) == ["ann", "ann"])
        }
    }

    @Test("An erased customer gets nothing more, and another upload gives nothing")
    func erasure() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            try await test.buys("t", "themes")
            let coins = try #require(
                try await test.ledger.deliveries.read(
                    of: test.app.bundleID, after: 0, limit: 1
                ).deliveries.first)
            _ = try await test.ledger.deliveries.acknowledge([coins.id], of: test.app.bundleID)
            let decision = try ManualDecision(by: "kim", because: "asked for it")
            _ = try await test.ledger.customers.erase("ann", of: test.app.bundleID, deciding: decision)
            for id in ["p", "t"] { try await test.buys(id, id == "p" ? "coins" : "themes", by: "bob", asOf: -0.5) }
            let states = try await test.deliveries().map { $0.split(separator: " ")[2] }
            #expect(states == ["acknowledged", "erased"])
        }
    }

    @Test("Periods give, trials too; a refund takes back, an upgrade does not")
    func periods() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            let receipt = try await test.upload("a")
            let first = Answer(from: test.at(-40), asOf: test.at(-35)).but { $0.trial = true }
            try await test.check(receipt, first)
            #expect(try await test.deliveries() == ["1 purchase due ann"])
            // The next period is charged ahead.
            let renewed = first.but { ($0.periods, $0.asOf) = (2, test.at(-10.5)) }
            try await test.check(receipt, renewed)
            #expect(try await test.deliveries() == ["1 purchase due ann", "1 renewal due ann"])
            try await test.acknowledgeAll()
            try await test.check(
                receipt, renewed.but { ($0.asOf, $0.refunded) = (test.at(-2), (period: 1, at: test.at(-3))) })
            #expect(try await test.deliveries().last == "2 refund due ann")
            // A transfer moves no period.
            try await test.upload("a", by: "bob")
            try await test.check(
                receipt, renewed.but { ($0.asOf, $0.refunded) = (test.at(-1), (period: 1, at: test.at(-3))) })
            #expect(try await test.deliveries().count == 3)
        }
    }

    @Test("Acknowledging is idempotent, foreign deliveries are unknown, and a person can skip one")
    func acknowledging() async throws {
        try await withLedger { test in
            try await test.sellDeliverables()
            try await test.buys("p")
            try await test.buys("q", quantity: 2)
            let deliveries = test.ledger.acting(as: .user("kim")).deliveries
            let page = try await deliveries.read(of: test.app.bundleID, after: 0, limit: 10)
            #expect(page.deliveries.map(\.position) == [1, 2] && page.next == 2 && !page.more)
            let (first, second) = (page.deliveries[0].id, page.deliveries[1].id)
            let results = try await deliveries.acknowledge([first, 99, first], of: test.app.bundleID)
            #expect(results.map(\.state) == [.acknowledged, nil, .acknowledged])
            #expect(results[0].settledBy == "kim" && results[0].isFirst)
            let again = try await deliveries.acknowledge([first], of: test.app.bundleID)
            #expect(again.map(\.isFirst) == [false] && again[0].settledAt == results[0].settledAt)
            let skipped = try await deliveries.skip(second, of: test.app.bundleID, because: "a mistake")
            #expect(skipped.isFirst && skipped.state == .skipped)
            #expect(try await deliveries.acknowledge([second], of: test.app.bundleID).map(\.state) == [.skipped])
            await #expect(throws: LedgerError.self) {
                try await deliveries.skip(first, of: test.app.bundleID, because: "too late")
            }
            let due = try await deliveries.read(
                of: test.app.bundleID, state: .due, after: 0, limit: 10)
            #expect(due.deliveries.isEmpty)
            let sandbox = try await deliveries.read(
                of: test.app.bundleID, environment: .sandbox, after: 0, limit: 10)
            #expect(sandbox.deliveries.isEmpty)
        }
    }
}

@Suite("A session that saw the queue empty reads no other deliveries later")
struct QueuePlanTests {
    /// Purchase 1 has 400 due deliveries and purchase 2 one, number 401.
    private static let queue = """
        SET LOCAL session_replication_role = replica;
        INSERT INTO ledger.delivery (
            app_id, environment, customer_id, product_id, kind, turn, reason, purchase_id, transaction_id,
            original_transaction_id)
        SELECT 1, 'Production', 1, 'themes', 'non_consumable', 2 * n - 1, 'purchase', CASE WHEN n < 401 THEN 1 ELSE 2 END, n, n
        FROM generate_series(1, 401) AS n ORDER BY n;
        INSERT INTO ledger.due_delivery (app_id, environment, delivery_id)
        SELECT app_id, environment, delivery_id FROM ledger.delivery;
        """

    /// Statements about purchase 2 and its delivery, in the order of its life.
    private static let calls = [
        "SELECT ledger.mark_due(ARRAY[2]::bigint[], '{}')", "SELECT ledger.store_turns(ARRAY[2]::bigint[], '{}')",
        "SELECT ledger.acknowledge_unchanged('com.example.app', ARRAY[401]::bigint[], 'key 1')",
        "SELECT ledger.settle_deliveries(1, ARRAY[401]::bigint[], 'key 1', NULL)",
    ]

    /// The rows and index entries of deliveries and of the queue that this transaction read so far, and its session shortly before.
    static let entries = Statement.test(
        """
        SELECT sum(pg_stat_get_xact_tuples_returned(c.oid))::bigint AS entries FROM pg_class c
        WHERE c.oid IN ('ledger.delivery'::regclass, 'ledger.due_delivery'::regclass)
           OR c.oid IN (SELECT i.indexrelid FROM pg_index i
                        WHERE i.indrelid IN ('ledger.delivery'::regclass, 'ledger.due_delivery'::regclass))
        """)

    @Test("Marking, storing turns, acknowledging and settling one delivery read a few entries of four hundred")
    func plannedWhileEmpty() async throws {
        try await withNewLedger { test in
            for table in ["delivery", "due_delivery"] {
                try await test.database.runOutsideTransaction("VACUUM ANALYZE ledger.\(table)")
            }
            try await test.database.transaction { transaction in
                for call in Self.calls { try transaction.script(call) }
                try transaction.script(Self.queue)
                for call in Self.calls {
                    let before = try transaction.query(Self.entries)[0].int8("entries")
                    try transaction.script(call)
                    let read = try transaction.query(Self.entries)[0].int8("entries") - before
                    #expect(read < 20, "\(call) read \(read)")
                }
                try transaction.script("SELECT ledger.place_deliveries(1000)")
                let read = try transaction.query(Self.entries)[0].int8("entries")
                #expect(read < 4_000, "places for 401 read \(read)")
            }
        }
    }
}
