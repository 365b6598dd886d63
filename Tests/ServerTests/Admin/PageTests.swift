import Hummingbird
import HummingbirdTesting
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

/// The tests that use it write nothing that a page of theirs shows.
private let shown = OncePerSuite(AdminWorld.withReceipt)

@Suite("The admin pages say in accessible HTML what is stored", shown) struct PageTests {
    /// Signed in to a world that other tests see too.
    private func reading(
        _ body: @escaping @Sendable (AdminWorld, Browser, ReceiptID) async throws -> Void
    ) async throws {
        try await shown.use { world, receipt in
            try await world.serving { browser in
                try await browser.signIn(world.secret)
                try await body(world, browser, receipt)
            }
        }
    }

    /// Signed in to a world of its own.
    private func signedIn(
        _ body: @escaping @Sendable (AdminWorld, Browser, ReceiptID) async throws -> Void
    ) async throws {
        try await AdminWorld.with { world in
            try await world.serving { browser, receipt in
                try await browser.signIn(world.secret)
                try await body(world, browser, receipt)
            }
        }
    }

    private static let escaped = "&lt;kim&gt; &amp; &quot;co&quot;"

    @Test("Every page is accessible")
    func everyPageIsForEverybody() async throws {
        try await reading { world, browser, receipt in
            _ = try await world.ledger.operations.summarise(isFirstRound: true)
            let customer = CustomerPage.path(of: AdminWorld.customer, in: AdminWorld.app)
            for path in [
                "/admin", "/admin?days=1095&app=com.example.app&environment=Sandbox", "/admin/customers",
                "/admin/customers?q=%3Ck", customer, "/admin/receipts/\(receipt)", "/admin/incidents", "/admin/sign-in",
                "/admin/retention", "/admin/cohorts?environment=Sandbox", "/admin/trials",
                ActionPage.path(.grant, AdminWorld.customer, in: AdminWorld.app),
                ActionPage.path(.check, AdminWorld.customer, in: AdminWorld.app),
                "/",
            ] {
                let answer = try await browser.get(path)
                #expect(answer.status == .ok, "\(path)")
                #expect(answer.headers[.contentType] == "text/html; charset=utf-8")
                expectAccessible(answer.text, path)
            }
        }
    }

    @Test("The address of the server leads on, without a key")
    func front() async throws {
        try await shown.use { world, _ in
            try await world.serving { browser in
                let page = try await browser.get("/").text
                for path in ["/admin", "/openapi.yaml", "/readyz", "/metrics"] {
                    #expect(page.contains("<a href=\"\(path)\">"))
                }
            }
        }
    }

    @Test("A customer is found", arguments: ["%3Ck", "100", "1"])
    func aCustomerIsFound(text: String) async throws {
        try await reading { _, browser, _ in
            let page = try await browser.get("/admin/customers?q=\(text)").text
            let link = CustomerPage.path(of: AdminWorld.customer, in: AdminWorld.app)
                .replacing("&", with: "&amp;")
            #expect(page.contains("<a href=\"\(link)\">\(Self.escaped)</a>"), "\(page)")
        }
    }

    @Test("No customer is found", arguments: ["kim", "%25", "_kim", "101", "999999999999999999999", "%5C", "'"])
    func nobodyIsFound(text: String) async throws {
        try await reading { _, browser, _ in
            let answer = try await browser.get("/admin/customers?q=\(text)")
            #expect(answer.status == .ok && !answer.text.contains("/admin/customer?"), "\(answer.text)")
        }
    }

    @Test("The page of a customer shows everything")
    func aCustomersPageTellsEverything() async throws {
        try await reading { _, browser, receipt in
            let path = CustomerPage.path(of: AdminWorld.customer, in: AdminWorld.app)
            let page = try await browser.get(path).text
            #expect(page.contains("<h1>Customer \(Self.escaped)</h1>") && !page.contains("<kim>"))
            for text in [
                "The customer may use monthly.", "subscription.started", "ownership.assigned",
                "A period that is paid for is running", "Apple says the paid period ends at ",
                "<summary>What Apple wrote</summary>", "&quot;web_order_line_item_id&quot; : &quot;1&quot;",
                "<th scope=\"row\">100</th>",
                "awaiting_renewal (renewal)", "expired (unknown)", "<a href=\"/admin/receipts/\(receipt)\">",
            ] {
                #expect(page.contains(text), "\(text) is missing in \(page)")
            }
        }
    }

    @Test("A path under /admin that there is not, and a method that it does not serve, get a page")
    func errorsArePages() async throws {
        try await reading { _, browser, _ in
            for (answer, status) in [
                (try await browser.get("/admin/nothing"), 404), (try await browser.get("/admin/customer/nothing"), 404),
                (try await browser.client.send(.put, "/admin/customers"), 405),
            ] {
                #expect(answer.status.code == status && answer.headers[.contentType] == "text/html; charset=utf-8")
                #expect(answer.headers[.contentSecurityPolicy] != nil && answer.headers[.requestID] != nil)
                expectAccessible(answer.text, "\(status)")
                #expect(!answer.text.contains("openapi.yaml"), "a person wants a page")
            }
            try expectProblem(try await browser.get("/administration"), "not-found", status: 404)
        }
        try await Serving.withoutDatabase { client in
            let page = try await Browser(client: client).post(
                "/admin/session", ["key": "x"], from: [.origin: "http://x"])
            #expect(page.status == .forbidden && page.headers[.contentType] == "text/html; charset=utf-8")
        }
    }

    @Test("A page about an unknown customer, app or receipt is not found")
    func unknownIsNotFound() async throws {
        try await reading { _, browser, receipt in
            for path in [
                "/admin/customer?app=com.example.app&id=unknown-customer",
                "/admin/customer?app=com.example.none&id=kim",
                "/admin/receipts/0", "/admin/receipts/x", "/admin/receipts/+\(receipt)", "/admin/receipts/0\(receipt)",
                "/admin?app=com.example.none",
                "/admin/customers?app=com.example.none", "/admin/retention?app=com.example.none",
            ] {
                let answer = try await browser.get(path)
                #expect(answer.status == .notFound && answer.text.contains("role=\"alert\""), "\(path)")
            }
            #expect(try await browser.get("/admin/customer").status == .badRequest)
        }
    }

    @Test("A receipt is checked at most once a minute")
    func aReceiptIsCheckedAtMostOnceAMinute() async throws {
        try await signedIn { world, browser, receipt in
            let path = ReceiptPage.path(of: receipt)
            let page = try await browser.get(path).text
            #expect(page.contains("<td>verified</td>") && page.contains(Self.escaped))
            let token = try await browser.formToken(on: path)
            let lately = try await browser.post(path + "/check", ["form_token": token])
            #expect(lately.status == .seeOther && lately.headers[.location] == path + "?result=lately")
            try await world.database.transaction {
                try $0.script(
                    """
                    UPDATE ledger.receipt SET asked_at = now() - interval '61 seconds';
                    UPDATE ledger.poll_schedule SET fingerprint = NULL, confirmed_at = NULL, confirmed_as_of = NULL
                    """)
            }
            let checked = try await browser.post(path + "/check", ["form_token": token])
            #expect(checked.headers[.location] == path + "?result=checked")
            #expect(try await world.ledger.admin.wasAsked(about: receipt, withinSeconds: 60) == true)
            let audit = try await world.database.query(
                .init(
                    name: "audit",
                    sql:
                        "SELECT actor, bundle_id FROM perennial.audit_log WHERE action = 'receipt.checked' AND receipt_id = \(receipt)"
                ))
            #expect(try audit.map { try $0.text("actor").hasPrefix("key ") } == [true])
            #expect(try audit.map { try $0.text("bundle_id") } == ["com.example.app"])
            let reported = try await browser.get(path + "?result=checked").text
            #expect(reported.contains(ReceiptPage.CheckResult.checked.sentence))
            #expect(try await !browser.get(path + "?result=%3Cb%3E").text.contains("role=\"status\""))
            let missing = try await browser.post("/admin/receipts/0/check", ["form_token": token])
            #expect(missing.status == .notFound)
        }
    }

    @Test("The page of a customer says how a term is paid, in the words of the explanation")
    func howATermIsPaid() async throws {
        try await signedIn { world, browser, _ in
            try await world.database.transaction {
                try $0.script(
                    """
                    UPDATE ledger.period SET sale = '{"plan": "MONTHLY", "payment_number": 3, "payments": 12,
                                                      "term_ends_at_ms": 1827271490000, "seats": 6}'
                    """)
            }
            let page = try await browser.get(CustomerPage.path(of: AdminWorld.customer, in: AdminWorld.app)).text
            let paid = "payment 3 of 12 of a term until 2027-11-26 23:24:50 UTC, 6 seats"
            #expect(page.contains("<p>Paid: \(paid).</p>"), "\(page)")
            #expect(page.contains("monthly, \(paid)"))
            #expect(!page.contains("2027-11-26T23:24:50.000Z"))
        }
    }

    @Test("The overview shows the summaries")
    func theOverviewShowsTheSummaries() async throws {
        try await signedIn { world, browser, _ in
            let empty = try await browser.get("/admin").text
            #expect(empty.contains("No worker has summarised anything yet."))
            let step = try await world.ledger.operations.summarise(isFirstRound: true)
            #expect(step?.subscriptions == 1)
            let page = try await browser.get("/admin?days=30").text
            #expect(page.contains("state=active\">With access</a></dt><dd><strong>1</strong>"), "\(page)")
            #expect(page.contains(">Paying</a></dt><dd><strong>1</strong>") && page.contains(">Period</label>"))
            #expect(page.contains("<rect class=\"spot\"") && page.contains("\nWith access: 1\nPaying: 1"))
            #expect(page.contains("with every event so far"))
            for title in ["Subscriptions with access", "Subscriptions that stopped paying", "Trials that began"] {
                #expect(page.contains("<caption>\(title)</caption>"), "\(title)")
            }
            // The receipt of the test was verified within this hour, or within the one before.
            #expect(page.contains("1 verified, 0 refused, 0 without an answer.") || page.contains(">1</td>"))
            try await world.ledger.apps.add("com.example.other")
            let other = try await browser.get("/admin?app=com.example.other").text
            #expect(other.contains(">With access</a></dt><dd><strong>0</strong>"))
        }
    }

    @Test("An incident is shown")
    func anIncidentIsShown() async throws {
        try await signedIn { world, browser, _ in
            #expect(try await browser.get("/admin/incidents").text.contains("There was none."))
            try await world.database.transaction {
                try $0.script(
                    """
                    INSERT INTO ledger.incident (app_id, kind, opened_at, recognised_at, asked, refused, last_reason)
                    SELECT app_id, 'refusals', now(), now(), 1234, 12, 'Because <of> it' FROM ledger.app
                    """)
            }
            let page = try await browser.get("/admin/incidents").text
            #expect(page.contains("<td>running</td>") && page.contains("Because &lt;of&gt; it"))
            #expect(page.contains("1\u{202F}234"))
            let overview = try await browser.get("/admin").text
            #expect(
                overview.contains(
                    "<div class=\"alarm\"><dt><a href=\"/admin/incidents\">Incidents</a></dt><dd><strong>1</strong>"))
        }
    }

    @Test("What workers found violated is shown")
    func whatWorkersFoundViolatedIsShown() async throws {
        try await signedIn { world, browser, _ in
            #expect(try await browser.get("/admin/incidents").text.contains("No worker has looked at them yet."))
            try await world.ledger.operations.writeInvariants([.coverage: (3, 3), .feed: (2, 0)])
            let page = try await browser.get("/admin/incidents").text
            #expect(page.contains("<th scope=\"row\">coverage</th>") && page.contains("Run `perennial verify`"))
            let overview = try await browser.get("/admin").text
            #expect(
                overview.contains(
                    "<div class=\"alarm\"><dt><a href=\"/admin/incidents\">Violations</a></dt><dd><strong>2</strong>"))
        }
    }

    @Test("Without a database the pages say so")
    func withoutADatabaseThePagesSaySo() async throws {
        try await Serving.withoutDatabase { client in
            let browser = Browser(client: client)
            #expect(try await browser.get("/admin").status == .seeOther)
            browser.cookie = "perennial_session=" + String(repeating: "0", count: 64)
            let answer = try await browser.get("/admin")
            #expect(answer.status == .serviceUnavailable && answer.text.contains("database"))
        }
    }
}
