import Hummingbird
import HummingbirdTesting
import Postgres
import Subscriptions
import Testing
import Tracking

@testable import Server

@Suite("Support grants, ends and merges on the pages, each after a confirmation") struct ActionPageTests {
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

    private static let customer = CustomerPage.path(of: AdminWorld.customer, in: AdminWorld.app)

    /// Sends an action's form and expects a confirmation that changes nothing, and then confirms it.
    private func confirm(
        _ action: CustomerAction, _ more: KeyValuePairs<String, String>, says sentence: String, _ browser: Browser
    ) async throws -> TestResponse {
        let form = ActionPage.path(action, AdminWorld.customer, in: AdminWorld.app)
        let token = try await browser.formToken(on: form)
        let fields =
            [
                ("form_token", token), ("action", action.rawValue), ("app", AdminWorld.app.text),
                ("id", AdminWorld.customer), ("actor", "lee"), ("reason", "a <test>"),
            ] + more.map { ($0.key, $0.value) }
        let page = try await browser.post(ActionPage.path, fields)
        #expect(page.status == .ok && page.text.contains(sentence), "\(page.text)")
        #expect(page.text.contains("name=\"confirmed\" value=\"yes\"") && page.text.contains("a &lt;test&gt;"))
        expectAccessible(page.text, action.rawValue)
        return try await browser.post(ActionPage.path, fields + [("confirmed", "yes")])
    }

    private func audit(_ world: AdminWorld, _ action: String) async throws -> [String] {
        try await world.database.query(
            .init(name: "audit \(action)", sql: "SELECT actor FROM perennial.audit_log WHERE action = '\(action)'")
        ).map { try $0.text("actor") }
    }

    @Test("An entitlement is granted and ended, and the audit has the session's key")
    func grantAndRevoke() async throws {
        try await signedIn { world, browser, _ in
            let granted = try await confirm(
                .grant, ["entitlement": "monthly", "until": "2099-12-31"],
                says: "gets monthly until the end of 2099-12-31 (UTC).", browser)
            #expect(granted.headers[.location] == Self.customer + "&result=grant")
            let page = try await browser.get(Self.customer + "&result=grant").text
            #expect(page.contains("The entitlement is granted.") && page.contains(">2100-01-01 00:00:00</time>"))
            #expect(page.contains("a &lt;test&gt;") && page.contains(">End it</a>"))
            #expect(try await audit(world, "grant.given").map { $0.hasPrefix("key ") } == [true])
            let ended = try await confirm(
                .revoke, ["entitlement": "monthly"], says: "The manual grant of monthly to ", browser)
            #expect(ended.headers[.location] == Self.customer + "&result=revoke")
            #expect(try await !browser.get(Self.customer).text.contains(">End it</a>"))
            #expect(try await audit(world, "grant.revoked").count == 1)
        }
    }

    @Test("A customer is merged into another, whose page follows")
    func merge() async throws {
        try await signedIn { world, browser, _ in
            let merged = try await confirm(.merge, ["into": "lee"], says: "becomes lee", browser)
            let path = CustomerPage.path(of: "lee", in: AdminWorld.app) + "&result=merge"
            #expect(merged.status == .seeOther && merged.headers[.location] == path, "\(merged.text)")
            #expect(try await browser.get(path).text.contains("The customer may use monthly."))
            #expect(try await audit(world, "customer.merged").count == 1)
        }
    }

    @Test("Apple is asked about the customer's subscriptions, at most once a minute")
    func check() async throws {
        try await signedIn { world, browser, _ in
            let path = ActionPage.path(.check, AdminWorld.customer, in: AdminWorld.app)
            let token = try await browser.formToken(on: path)
            #expect(try await browser.get(path).text.contains("name=\"confirmed\""))
            let fields = [
                ("form_token", token), ("action", "check"), ("app", AdminWorld.app.text), ("id", AdminWorld.customer),
                ("confirmed", "yes"),
            ]
            let lately = try await browser.post(ActionPage.path, fields)
            #expect(lately.headers[.location] == Self.customer + "&result=lately")
            try await world.database.transaction {
                try $0.script(
                    """
                    UPDATE ledger.receipt SET asked_at = now() - interval '61 seconds';
                    UPDATE ledger.poll_schedule SET fingerprint = NULL, confirmed_at = NULL, confirmed_as_of = NULL
                    """)
            }
            let checked = try await browser.post(ActionPage.path, fields)
            #expect(checked.headers[.location] == Self.customer + "&result=checked")
            #expect(try await audit(world, "receipt.checked").count == 1)
        }
    }

    @Test("Nothing is done without a token, a reason, a known customer or a known entitlement")
    func refused() async throws {
        try await signedIn { world, browser, _ in
            let token = try await browser.formToken(on: Self.customer)
            let whole = [
                ("form_token", token), ("action", "grant"), ("app", AdminWorld.app.text),
                ("id", AdminWorld.customer), ("entitlement", "monthly"), ("actor", "lee"), ("reason", "x"),
                ("confirmed", "yes"),
            ]
            for (name, value, status) in [
                ("form_token", "0", 403), ("action", "erase", 400), ("app", "", 400), ("id", "stranger", 404),
                ("app", "com.example.none", 404), ("entitlement", "", 400), ("entitlement", "mothly", 400),
                ("actor", "", 400), ("reason", " ", 400), ("until", "tomorrow", 400), ("until", "2001-01-01", 400),
            ] {
                let fields = whole.filter { $0.0 != name } + [(name, value)]
                let answer = try await browser.post(ActionPage.path, fields)
                #expect(answer.status.code == status && answer.text.contains("role=\"alert\""), "\(name) \(value)")
            }
            #expect(try await audit(world, "grant.given").isEmpty)
            let stranger = Browser(client: browser.client)
            #expect(try await stranger.post(ActionPage.path, whole).headers[.location] == SignIn.path)
        }
    }
}
