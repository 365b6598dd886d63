import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

/// The tests that use it end no session but their own, and read none.
private let shared = OncePerSuite(AdminWorld.withReceipt)

@Suite("The admin pages need a session of a strict browser", shared) struct SignInTests {
    private static let pages = [
        "/admin", "/admin/customers", "/admin/customers?q=k", "/admin/customer?app=com.example.app&id=kim",
        "/admin/receipts/1", "/admin/deliveries/1", "/admin/incidents", "/admin/webhooks", "/admin/webhooks/1",
    ]

    @Test("No page is shown without a session") func nobodySeesAPageWithoutASession() async throws {
        try await shared.use { world, _ in
            try await world.serving { browser in
                for page in Self.pages {
                    let answer = try await browser.get(page)
                    let form = page == "/admin" ? SignIn.path : address(SignIn.path, ["to": page])
                    #expect(answer.status == .seeOther && answer.headers[.location] == form, "\(page)")
                    #expect(answer.body.readableBytes == 0)
                }
                browser.cookie = "perennial_session=" + String(repeating: "0", count: 64)
                #expect(try await browser.get("/admin").status == .seeOther)
            }
        }
    }

    @Test("Signing in leads to the page that was wanted, and to no other site") func leadsOn() async throws {
        try await shared.use { world, _ in
            try await world.serving { browser in
                let wanted = "/admin/customer?app=com.example.app&id=a%20b"
                let form = try await browser.get(address(SignIn.path, ["to": wanted])).text
                #expect(form.contains(#"name="to" value="/admin/customer?app=com.example.app&amp;id=a%20b""#))
                for (asked, place) in [
                    (wanted, wanted), ("/admin?days=365", "/admin?days=365"), ("", "/admin"),
                    ("https://example.com/admin/", "/admin"), ("//example.com/admin", "/admin"),
                    ("/adminx", "/admin"), ("/admin/a\r\nSet-Cookie: b=c", "/admin"),
                ] {
                    let answer = try await browser.post("/admin/session", ["key": world.secret, "to": asked])
                    #expect(answer.status == .seeOther && answer.headers[.location] == place, "\(asked)")
                }
                let refused = try await browser.post("/admin/session", ["key": "nonsense", "to": wanted])
                #expect(refused.status == .forbidden && refused.text.contains(#"name="to""#))
            }
        }
    }

    @Test("Every answer has headers that make the browser strict") func everyAnswerTellsTheBrowserToBeStrict()
        async throws
    {
        try await shared.use { world, _ in
            try await world.serving { browser in
                let before = ["/admin", "/admin/sign-in", "/admin/style.css", "/admin/icon.svg"]
                var answers: [(String, TestResponse)] = []
                for page in before { answers.append((page, try await browser.get(page))) }
                answers.append(("a wrong key", try await browser.signIn("nonsense")))
                try await browser.signIn(world.secret)
                for page in Self.pages + ["/admin/receipts/x", "/admin/customer"] {
                    answers.append((page, try await browser.get(page)))
                }
                for (name, answer) in answers {
                    let policy = answer.headers[.contentSecurityPolicy] ?? ""
                    for part in [
                        "default-src 'none'", "style-src 'self'", "img-src 'self'", "form-action 'self'",
                        "frame-ancestors 'none'", "base-uri 'none'",
                    ] {
                        #expect(policy.contains(part), "\(name)")
                    }
                    #expect(!policy.contains("script") && !policy.contains("unsafe"), "\(name)")
                    #expect(answer.headers[.xContentTypeOptions] == "nosniff", "\(name)")
                    let isFile = name.contains(".css") || name.contains(".svg")
                    #expect(answer.headers[.cacheControl] == (isFile ? "public, max-age=300" : "no-store"), "\(name)")
                    #expect(!answer.text.contains("<script") && !answer.text.contains("style=\""), "\(name)")
                }
            }
        }
    }

    @Test("A key is exchanged for a session that only this browser has")
    func aKeyIsExchangedForASessionThatOnlyThisBrowserHas() async throws {
        try await AdminWorld.with { world in
            try await world.serving { browser, _ in
                let answer = try await browser.signIn(world.secret)
                #expect(answer.status == .seeOther && answer.headers[.location] == "/admin")
                let cookie = try #require(answer.headers[.setCookie])
                for part in ["HttpOnly", "SameSite=Strict", "Path=/admin", "Max-Age=43200"] {
                    #expect(cookie.contains(part), "\(cookie)")
                }
                let secret = try #require(browser.cookie?.split(separator: "=").last).description
                #expect(secret.utf8.count == 64 && !world.secret.contains(secret))
                let kept = try await world.database.query(
                    .init(name: "kept", sql: "SELECT encode(digest, 'hex') AS digest FROM ledger.admin_session"))
                #expect(kept.count == 1)
                #expect(try kept.first?.text("digest") != secret, "the secret itself is stored")
                #expect(try await browser.get("/admin").status == .ok)
            }
        }
    }

    @Test("Over the network the cookie needs TLS") func overTheNetworkTheCookieNeedsTLS() async throws {
        try await shared.use { world, _ in
            let tracker = Tracker.quiet(world.ledger)
            let server = HTTPServer(
                tracker: tracker, metrics: MetricsRegistry(), host: "127.0.0.1", port: 0, logger: .quiet)
            try await server.application.test(.live) { client in
                let browser = Browser(client: client)
                let here = try await browser.post("/admin/session", ["key": world.secret])
                #expect(here.headers[.setCookie]?.contains("Secure") == false)
                var proxied = HTTPFields()
                proxied[.forwardedProtocol] = "https"
                let there = try await browser.post("/admin/session", ["key": world.secret], from: proxied)
                #expect(there.headers[.setCookie]?.contains("Secure") == true)
            }
        }
    }

    @Test("A key of less scope or of one app is refused") func aKeyOfLessScopeOrOfOneAppIsRefused() async throws {
        try await shared.use { world, _ in
            let read = try await world.ledger.apps.createKey(scope: .read, for: nil).secret
            let write = try await world.ledger.apps.createKey(scope: .write, for: nil).secret
            let ofOneApp = try await world.ledger.apps.createKey(scope: .admin, for: AdminWorld.app).secret
            try await world.serving { browser in
                for secret in [read, write, ofOneApp, "", "perennial_" + String(repeating: "0", count: 64)] {
                    let answer = try await browser.signIn(secret)
                    #expect(answer.status == .forbidden && answer.headers[.setCookie] == nil)
                    #expect(answer.text.contains("role=\"alert\""))
                    #expect(secret.isEmpty || !answer.text.contains(secret), "the page repeats the key")
                }
            }
        }
    }

    /// The audit has each sign-in, each sign-out, and each key that was not enough. An unknown key leaves no line.
    @Test("The audit has every sign-in") func whoSignedInIsRemembered() async throws {
        try await AdminWorld.with { world in
            let read = try await world.ledger.apps.createKey(scope: .read, for: nil)
            let ofOneApp = try await world.ledger.apps.createKey(scope: .admin, for: AdminWorld.app)
            let journal = Journal()
            let tracker = Tracker(
                ledger: world.ledger, appStore: .answering(nil), options: TrackerOptions(),
                logger: journal.logger)
            try await Serving.with(tracker) { client in
                let browser = Browser(client: client)
                for secret in [read.secret, ofOneApp.secret, "nonsense", world.secret] {
                    try await browser.signIn(secret)
                }
                let token = try await browser.formToken(on: "/admin/incidents")
                _ = try await browser.post("/admin/sign-out", ["form_token": token])
            }
            let key = try #require(try await world.ledger.apps.key(withSecret: world.secret))
            let kept = try await world.database.query(
                .init(name: "kept", sql: "SELECT actor, action, bundle_id FROM perennial.audit_log ORDER BY audit_id"))
            let reported: [[String?]] = try kept.map { row in
                [try row.text("actor"), try row.text("action"), try row.textIfPresent("bundle_id")]
            }
            let expected: [[String?]] = [
                ["key \(read.id)", "admin.sign_in_refused", nil],
                ["key \(ofOneApp.id)", "admin.sign_in_refused", "com.example.app"],
                ["key \(key.id)", "admin.signed_in", nil], ["key \(key.id)", "admin.signed_out", nil],
            ]
            #expect(reported == expected)
            #expect(journal.lines.count { $0.hasPrefix("warning a sign-in") } == 1, "\(journal.lines)")
            #expect(!journal.lines.contains { $0.contains("nonsense") || $0.contains("perennial_") })
        }
    }

    @Test("A revoked key ends its sessions") func aRevokedKeyEndsItsSessions() async throws {
        try await AdminWorld.with { world in
            try await world.serving { browser, _ in
                try await browser.signIn(world.secret)
                #expect(try await browser.get("/admin/incidents").status == .ok)
                let key = try #require(try await world.ledger.apps.key(withSecret: world.secret))
                try await world.ledger.apps.revokeKey(key.id)
                #expect(try await browser.get("/admin/incidents").status == .seeOther)
            }
        }
    }

    @Test("A session ends by itself and by signing out") func aSessionEndsByItselfAndBySigningOut() async throws {
        try await AdminWorld.with { world in
            try await world.serving { browser, _ in
                try await browser.signIn(world.secret)
                let token = try await browser.formToken(on: "/admin/incidents")
                let cookie = browser.cookie
                let answer = try await browser.post("/admin/sign-out", ["form_token": token])
                #expect(answer.status == .seeOther && answer.headers[.setCookie]?.contains("Max-Age=0") == true)
                browser.cookie = cookie
                #expect(try await browser.get("/admin").status == .seeOther, "the session outlives the sign-out")

                try await browser.signIn(world.secret)
                try await world.database.transaction {
                    try $0.script("UPDATE ledger.admin_session SET expires_at = now() - interval '1 second'")
                }
                #expect(try await browser.get("/admin").status == .seeOther)
            }
        }
    }

    @Test("A form of another site or session does nothing") func foreignForms() async throws {
        try await shared.use { world, receipt in
            try await world.serving { browser in
                try await browser.signIn(world.secret)
                let token = try await browser.formToken(on: "/admin/incidents")
                let other = Browser(client: browser.client)
                try await other.signIn(world.secret)
                let otherToken = try await other.formToken(on: "/admin/incidents")
                #expect(token != otherToken)
                for wrong in ["", otherToken, String(token.dropLast()), token.uppercased() + "0"] {
                    let answer = try await browser.post("/admin/sign-out", ["form_token": wrong])
                    #expect(answer.status == .forbidden, "\(wrong)")
                    let check = try await browser.post("/admin/receipts/\(receipt)/check", ["form_token": wrong])
                    #expect(check.status == .forbidden, "\(wrong)")
                }
                let site = HTTPField.Name.fetchSite
                for (name, value) in [(site, "cross-site"), (site, "same-site"), (.origin, "https://evil.example")] {
                    var headers = HTTPFields()
                    headers[name] = value
                    let answer = try await browser.post("/admin/sign-out", ["form_token": token], from: headers)
                    #expect(answer.status == .forbidden, "\(name)")
                    let signIn = try await browser.post("/admin/session", ["key": world.secret], from: headers)
                    #expect(signIn.status == .forbidden && signIn.headers[.setCookie] == nil, "\(name)")
                }
                #expect(try await browser.get("/admin").status == .ok, "the session should have lived on")
            }
        }
    }

    @Test("The forms are limited and the pages can be switched off")
    func theFormsAreLimitedAndThePagesCanBeSwitchedOff() async throws {
        try await shared.use { world, _ in
            try await world.serving { browser in
                let answer = try await browser.signIn(String(repeating: "x", count: AdminForm.bytesMax))
                #expect(answer.status == .contentTooLarge)
            }
            let server = HTTPServer(
                tracker: .quiet(world.ledger), metrics: MetricsRegistry(), host: "127.0.0.1", port: 0, logger: .quiet,
                servesAdmin: false)
            try await server.application.test(.router) { (client: any TestClientProtocol) async throws -> Void in
                let browser = Browser(client: client)
                #expect(try await browser.get("/admin").status == .notFound)
                #expect(try await browser.get("/admin/sign-in").status == .notFound)
            }
        }
    }
}
