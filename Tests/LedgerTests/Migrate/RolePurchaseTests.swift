import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Ledger

@Suite("Roles may order and deliver as they need")
struct RolePurchaseTests {
    @Test(
        "Worker and server place orders, deliver, acknowledge, skip and expire",
        arguments: ["perennial_worker", "perennial_api"])
    func deliver(role: String) async throws {
        try await withLedger { test in
            try await test.ledger.operations.grantRoles()
            try await test.sellDeliverables()
            try await acting(as: role, on: test) { ledger, database in
                let own = TestLedger(
                    ledger: ledger, database: database, connectionString: test.connectionString, app: test.app,
                    worker: try await ledger.claims.startWorker(host: "role", process: 1), now: test.now)
                _ = try await ledger.orders.place(
                    OrderRequest(customer: "ann", productID: "coins"), of: test.app.bundleID, requestKey: "k")
                try await own.run("UPDATE ledger.purchase_order SET created_at = created_at - interval '3 days'")
                for id in ["p", "q"] { try await own.buys(id, quantity: id == "p" ? 1 : 2) }
                let skipped = try await ledger.acting(as: .user("kim")).deliveries.skip(
                    2, of: test.app.bundleID, because: "a test")
                #expect(skipped.isFirst)
                try await own.acknowledgeAll()
                try await own.buys("p", asOf: -0.8, refunded: -0.9)
                try await ledger.orders.expire()
                #expect(
                    try await own.deliveries() == [
                        "1 purchase acknowledged ann 100", "1 purchase a test ann 200", "2 refund due ann 100",
                    ])
            }
            try await test.expectRows(
                "SELECT state, cause FROM perennial.order_log ORDER BY at DESC LIMIT 1",
                [["delivered", "acknowledged"]])
            try await test.expectSound()
        }
    }
}
