import Crypto
import Foundation
import Hummingbird
import HummingbirdTesting
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("The admin pages show orders and deliveries, and skip what is due") struct DeliveryPageTests {
    private static let customer = CustomerPage.path(of: AdminWorld.customer, in: AdminWorld.app)

    /// A world whose customer ordered coins, got them, and bought some more, signed in.
    private func shop(
        _ body: @escaping @Sendable (AdminWorld, Browser, PlacedOrder) async throws -> Void
    ) async throws {
        try await AdminWorld.with { world in
            var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
            coins.credit = CatalogProduct.Credit(name: "<gold>", units: 100)
            coins.deliversSince = Instant(milliseconds: 0)
            try await world.ledger.apps.applyCatalog([coins], to: AdminWorld.app)
            let order = try await world.ledger.orders.place(
                OrderRequest(customer: AdminWorld.customer, productID: "coins", quantity: 2), of: AdminWorld.app,
                requestKey: "k")
            _ = try await world.ledger.orders.report(
                .purchasing, code: "<2>", of: order.id, proof: Self.proof("\(order.id).purchasing.<2>", by: order))
            let answer = Self.bought([("p", order.appAccountToken), ("q", "")])
            _ = try await Tracker.quiet(world.ledger, appStore: .answering(answer)).submit(
                Submission(bundleID: AdminWorld.app, customer: AdminWorld.customer, receipt: AdminWorld.receipt))
            let key = try #require(try await world.ledger.apps.key(withSecret: world.secret))
            _ = try await world.ledger.acting(as: .key(key.id)).deliveries.acknowledge([1], of: AdminWorld.app)
            try await world.serving { browser in
                try await browser.signIn(world.secret)
                try await body(world, browser, order)
            }
        }
    }

    private static func proof(_ message: String, by order: PlacedOrder) -> String {
        let key = SymmetricKey(data: Data(base64Encoded: order.key) ?? Data())
        return HMAC<SHA256>.authenticationCode(for: Data(message.utf8), using: key)
            .map { String(format: "%02x", $0) }.joined()
    }

    /// What Apple says of coins that were bought just now, a second apart: id and token.
    private static func bought(_ purchases: [(id: String, token: String)]) -> String {
        let now = Int64(Date.now.timeIntervalSince1970) * 1000
        let rows = purchases.enumerated().map { index, one in
            """
            {"product_id":"coins","quantity":"2","transaction_id":"\(one.id)","original_transaction_id":"\(one.id)",
             "purchase_date_ms":"\(now + Int64(index) * 1000)","original_purchase_date_ms":"\(now)",
             "app_account_token":"\(one.token)"}
            """
        }
        return """
            {"status":0,"environment":"Production","receipt":{"bundle_id":"com.example.app","request_date_ms":"\(now)",
             "receipt_creation_date_ms":"\(now)","in_app":[\(rows.joined(separator: ","))]},"latest_receipt_info":[]}
            """
    }

    @Test("A customer's page has each order with its log, each delivery in plain words, and the balances")
    func customer() async throws {
        try await shop { world, browser, order in
            let page = try await browser.get(Self.customer).text
            expectAccessible(page, "customer")
            for text in [
                "<th scope=\"row\">\(order.id)</th><td>delivered (acknowledged)</td><td><details>",
                "<summary>4 changes</summary>", "purchasing (device, code &lt;2&gt;)</li>", "paid (token)</li>",
                "<th scope=\"row\"><a href=\"/admin/deliveries/1\">1</a></th><td>acknowledged</td><td>gives 200 &lt;gold&gt;</td><td>purchase</td>",
                "<td>key 1</td>", "<td class=\"number\">2</td>",
                "<th scope=\"row\"><a href=\"/admin/deliveries/2\">2</a></th><td>due</td>",
                "<th scope=\"row\">&lt;gold&gt;</th><td>Production</td><td>200</td>",
            ] {
                #expect(page.contains(text), "\(text) is missing in \(page)")
            }
            #expect(!page.contains("<gold>") && !page.contains("<2>") && !page.contains("These are the newest"))
        }
    }

    @Test("A delivery is skipped with a reason and a confirmation, once, and the audit has it")
    func skip() async throws {
        try await shop { world, browser, _ in
            let path = DeliveryPage.path(of: 2)
            let page = try await browser.get(path).text
            expectAccessible(page, "delivery")
            #expect(page.contains("The customer does not get what the delivery would give"))
            let token = try await browser.formToken(on: path)
            let skip: KeyValuePairs = ["form_token": token, "confirmed": "yes", "reason": " sent by <post> "]
            let refused: [(String, KeyValuePairs<String, String>, HTTPResponse.Status)] = [
                (path, ["form_token": token, "reason": "why"], .badRequest),
                (path, ["form_token": token, "confirmed": "yes", "reason": " "], .badRequest),
                (path, ["form_token": token, "confirmed": "yes"], .badRequest),
                ("/admin/deliveries/+2", skip, .notFound), ("/admin/deliveries/02", skip, .notFound),
                (path, ["form_token": "", "confirmed": "yes", "reason": "why"], .forbidden),
                ("/admin/deliveries/1", skip, .conflict), ("/admin/deliveries/0", skip, .notFound),
                ("/admin/deliveries/x", skip, .notFound),
            ]
            for (path, fields, status) in refused {
                #expect(try await browser.post(path + "/skip", fields).status == status, "\(path) \(fields)")
            }
            for result in ["skipped", "before"] {
                let answer = try await browser.post(path + "/skip", skip)
                #expect(answer.status == .seeOther && answer.headers[.location] == path + "?result=\(result)")
            }
            let after = try await browser.get(path + "?result=skipped").text
            #expect(after.contains(DeliveryPage.SkipResult.skipped.sentence) && after.contains("sent by &lt;post&gt;"))
            #expect(after.contains("<td>skipped</td>") && !after.contains("<textarea"))
            #expect(try await browser.get(Self.customer).text.contains("<td class=\"prose\">sent by &lt;post&gt;</td>"))
            let audit = try await world.database.query(
                .init(
                    name: "audit",
                    sql: """
                        SELECT actor || ': ' || customer || ' ' || (detail ->> 'reason') AS line
                        FROM perennial.audit_log WHERE action = 'delivery.skipped'
                        """))
            #expect(try audit.map { try $0.text("line") } == ["key 1: \(AdminWorld.customer) sent by <post>"])
            for missing in ["0", "x", "+2", "02"] {
                #expect(try await browser.get("/admin/deliveries/" + missing).status == .notFound, "\(missing)")
            }
        }
    }

    @Test("The overview says what is due in the environment, and for how long, where anything is")
    func overview() async throws {
        try await shop { world, browser, _ in
            #expect(
                try await browser.get("/admin").text.contains(
                    "<div><dt>Deliveries due</dt><dd><strong>1</strong> <span>the oldest for 0 min</span>"))
            try await world.database.transaction {
                try $0.script("UPDATE ledger.delivery SET created_at = now() - interval '125 minutes'")
            }
            #expect(
                try await browser.get("/admin?app=com.example.app").text.contains(
                    "<div class=\"alarm\"><dt>Deliveries due</dt><dd><strong>1</strong> <span>the oldest for 2 h 5 min")
            )
            for other in ["/admin?environment=Sandbox", "/admin?app=com.example.other"] {
                #expect(try await !browser.get(other).text.contains("Deliveries due"), "\(other)")
            }
            _ = try await world.ledger.deliveries.acknowledge([2], of: AdminWorld.app)
            #expect(try await !browser.get("/admin").text.contains("Deliveries due"))
        }
    }

    @Test("The newest hundred orders and deliveries are shown, and the page says that there are more")
    func cut() async throws {
        try await shop { world, browser, order in
            try await world.database.transaction {
                try $0.script(
                    """
                    INSERT INTO ledger.purchase_order (
                        app_id, customer_id, product_id, quantity, sealed_key, cause, created_at, expires_at, changed_at)
                    SELECT o.app_id, o.customer_id, o.product_id, 1, o.sealed_key, 'placed', now(), now(), now()
                    FROM ledger.purchase_order o CROSS JOIN generate_series(1, 100);
                    INSERT INTO ledger.delivery (
                        app_id, environment, customer_id, product_id, kind, credit, units, turn, reason, purchase_id,
                        transaction_id, original_transaction_id)
                    SELECT d.app_id, d.environment, d.customer_id, d.product_id, d.kind, d.credit, d.units, 1 + g,
                           CASE g % 2 WHEN 0 THEN 'transfer' ELSE 'refund' END, d.purchase_id, d.transaction_id,
                           d.original_transaction_id
                    FROM ledger.delivery d CROSS JOIN generate_series(1, 99) g WHERE d.delivery_id = 1;
                    INSERT INTO ledger.due_delivery (delivery_id, app_id, environment)
                    SELECT d.delivery_id, d.app_id, d.environment FROM ledger.delivery d WHERE d.position IS NULL ON CONFLICT DO NOTHING;
                    """)
            }
            let page = try await browser.get(Self.customer).text
            #expect(page.contains("These are the newest 100 orders.") && !page.contains("<td>delivered (acknowledged)"))
            #expect(page.contains("These are the newest 100 deliveries.") && !page.contains("/admin/deliveries/1\""))
            #expect(page.matches(of: #/<summary>1 change<\/summary>/#).count == 100)
            #expect(page.contains("<td>takes back 200 ") && page.contains("<td>gives again 200 "))
            #expect(page.contains("<td>takes back again 200 "))
        }
    }

    @Test(
        "Lengths of time are readable",
        arguments: [
            (-5, "0 min"), (59, "0 min"), (60, "1 min"), (3_599, "59 min"), (3_600, "1 h 0 min"),
            (86_399, "23 h 59 min"), (86_400, "1 d 0 h"), (100_000_000, "1\u{202F}157 d 9 h"),
        ] as [(Double, String)])
    func lengths(seconds: Double, text: String) {
        #expect(lasting(seconds) == text)
    }
}
