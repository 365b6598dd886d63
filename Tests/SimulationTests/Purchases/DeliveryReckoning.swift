import AppStoreSimulator
import Postgres
import Testing

/// What was delivered in the end, beside what the store knows.
struct DeliveryReckoning {
    /// One row of deliveries, as text, by customer.
    private let logged: [String: [String]]
    private let given: [String: [String]]
    private let orders: [String: [String]]
    private let balances: [String: Int64]
    private let accounts: [String: Int64]

    init(_ world: ShopWorld) async throws {
        logged = try await Self.texts(
            """
            SELECT customer, concat_ws(' ', transaction_id, 'turn', turn, product_id, units) ||
                   CASE state WHEN 'acknowledged' THEN '' ELSE ' ' || state END AS line FROM perennial.delivery_log
            """, named: "logged", in: world.ledger)
        given = try await Self.texts(
            "SELECT customer, concat_ws(' ', transaction_id, 'turn', turn, product_id, units) AS line FROM given",
            named: "given", in: world.shop)
        orders = try await Self.texts(
            """
            SELECT c.name AS customer, CASE
                   WHEN o.state = 'expired' AND o.expires_at <= (
                       SELECT min(d.created_at) FROM ledger.delivery d WHERE d.customer_id = o.customer_id)
                   THEN 'expired before the payment was seen'
                   ELSE concat_ws(' ', o.state, 'by', o.transaction_id, 'because', (
                       SELECT string_agg(l.cause, ' and ') FROM perennial.order_log l
                       WHERE l.order_id = o.order_id::text AND l.state = 'paid')) END AS line
            FROM ledger.purchase_order o JOIN ledger.customer c USING (customer_id)
            """, named: "orders", in: world.ledger)
        balances = try await Self.sums(
            "SELECT customer, units::bigint AS units FROM perennial.credit_balance", named: "balances", in: world.ledger
        )
        accounts = try await Self.sums("SELECT customer, units FROM account", named: "accounts", in: world.shop)
    }

    private static func texts(_ sql: String, named name: String, in database: Database) async throws
        -> [String: [String]]
    {
        try await database.query(Statement(name: name, sql: sql)).reduce(into: [:]) { all, row in
            all[try row.text("customer"), default: []].append(try row.text("line"))
        }
    }

    private static func sums(_ sql: String, named name: String, in database: Database) async throws -> [String: Int64] {
        try await database.query(Statement(name: name, sql: sql)).reduce(into: [:]) { all, row in
            all[try row.text("customer")] = try row.int8("units")
        }
    }

    /// Exactly what the store's truth wants, for exactly these customers.
    func expectAgreement(with rounds: [(plan: RoundPlan, truth: CustomerTruth)], seed: UInt64) {
        let customers = Set(rounds.map(\.truth.customer))
        #expect(Set(logged.keys) == customers && Set(given.keys) == customers, "seed \(seed): customers")
        #expect(Set(orders.keys) == customers, "seed \(seed): customers with orders")
        for (plan, truth) in rounds {
            let (name, note) = (truth.customer, "seed \(seed), \(truth.customer), \(plan)")
            let expected = truth.deliveries.flatMap { one in (1...one.turns).map { one.line(turn: $0) } }.sorted()
            #expect((logged[name] ?? []).sorted() == expected, "deliveries: \(note)")
            #expect((given[name] ?? []).sorted() == expected, "given: \(note)")
            guard let paying = truth.deliveries.first else {
                Issue.record("nothing was bought: \(note)")
                continue
            }
            let state = paying.turns % 2 == 1 ? "delivered" : "refunded"
            // A payment that nothing ties to its order pays only an open one, and orders are open for two seconds here.
            let late = plan.tie == .product ? ["expired before the payment was seen"] : nil
            let paid = ["\(state) by \(paying.transactionID) because \(plan.tie)"]
            #expect(orders[name] == paid || orders[name] == late, "order: \(note)")
            let units = truth.deliveries.reduce(0) { $0 + ($1.turns % 2 == 1 ? $1.units ?? 0 : 0) }
            #expect((balances[name] ?? 0) == units && (accounts[name] ?? 0) == units, "credits: \(note)")
        }
    }
}

extension DeliveryTruth {
    fileprivate var units: Int64? { kind == .consumable ? Int64(quantity * ShopWorld.unitsOfCoins) : nil }

    /// As `DeliveryReckoning` reads it.
    fileprivate func line(turn: Int) -> String {
        "\(transactionID) turn \(turn) \(product)" + (units.map { " \($0)" } ?? "")
    }
}
