import Postgres
import Subscriptions
import Testing

@testable import Tracking

extension TestLedger {
    /// The same ledger with a master key, which seals the keys of orders.
    var sealed: SubscriptionLedger {
        get throws {
            SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: Array(repeating: 7, count: 32)))
        }
    }

    /// What the tests of deliveries sell, delivered since 100 days ago.
    func sellDeliverables() async throws {
        var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
        coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
        let others = [
            CatalogProduct(id: "themes", kind: .nonConsumable, entitlements: ["themes"]),
            CatalogProduct(id: "season", kind: .nonRenewing, period: "P1M", entitlements: ["shows"]),
            CatalogProduct(id: "monthly", kind: .autoRenewable, entitlements: ["monthly"]),
        ]
        try await sell(
            ([coins] + others).map { product in
                var product = product
                product.deliversSince = at(-100)
                return product
            })
        // Verification excuses what a worker has yet to release.
        while try await ledger.deliveries.release() {}
    }

    /// The deliveries of the app in the order of their numbers: turn, reason, state or reason of the skip, customer,
    /// units.
    func deliveries() async throws -> [String] {
        try await ledger.deliveries.place()
        let statement = Statement.test(
            """
            SELECT concat_ws(' ', d.turn, d.reason, COALESCE(d.skip_reason, d.state), d.customer, d.units) AS line
            FROM perennial.delivery_log d ORDER BY d.delivery_id::bigint
            """)
        return try await database.query(statement).map { try $0.text("line") }
    }

    /// Acknowledges everything that is due.
    func acknowledgeAll() async throws {
        let due = try await ledger.deliveries.read(
            of: app.bundleID, state: .due, after: 0, limit: 1_000)
        #expect(!due.deliveries.isEmpty, "nothing is due")
        let results = try await ledger.deliveries.acknowledge(due.deliveries.map(\.id), of: app.bundleID)
        #expect(results.allSatisfy { $0.isFirst && $0.state == .acknowledged })
    }

    /// A customer uploads a receipt with a one-time purchase, which Apple then states.
    func buys(
        _ id: String, _ product: ProductID = "coins", quantity: Int = 1, by customer: String = "ann", days: Double = -2,
        asOf: Double = -1, refunded: Double? = nil
    ) async throws {
        try await check(
            try await upload("receipt of \(id)", by: customer),
            purchase(
                id, product: product, quantity: quantity, at: at(days), asOf: at(asOf), refundedAt: refunded.map(at)))
    }
}
