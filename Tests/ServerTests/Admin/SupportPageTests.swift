import Crypto
import Hummingbird
import HummingbirdTesting
import Postgres
import Subscriptions
import Synchronization
import Testing
import Tracking

@testable import AppStore
@testable import Server

@Suite("Support asks Apple on the pages, and what changes something comes after a confirmation")
struct SupportPageTests {
    /// What Apple was asked, and what it answers.
    private final class Apple: Sendable {
        private let state = Mutex<(asked: [SupportQuestion], outcome: SupportAnswer.Outcome)>(
            ([], .done(.accepted)))

        var asked: [SupportQuestion] { state.withLock(\.asked) }

        func say(_ outcome: SupportAnswer.Outcome) { state.withLock { $0.outcome = outcome } }

        var client: ServerAPIClient {
            ServerAPIClient { [self] request in
                state.withLock { state in
                    state.asked.append(request.question)
                    return SupportAnswer(outcome: state.outcome)
                }
            } read: { _ in
                AppStoreAnswer(environment: .production, server: .keyRefused, httpStatus: nil, calls: 0)
            }
        }
    }

    /// Signed in to a world of its own, whose app has a server key.
    private func signedIn(
        _ body: @escaping @Sendable (AdminWorld, Browser, Apple) async throws -> Void
    ) async throws {
        try await AdminWorld.with { world in
            let (apple, pem) = (Apple(), P256.Signing.PrivateKey().pemRepresentation)
            var world = world
            world.server = apple.client
            try await world.ledger.apps.storeServerKey(
                try ConnectKey(pem: pem, id: "K", issuer: "I"), of: AdminWorld.app)
            let asking = world
            try await asking.serving { browser, _ in
                try await browser.signIn(asking.secret)
                try await body(asking, browser, apple)
            }
        }
    }

    private static let customer = CustomerPage.path(of: AdminWorld.customer, in: AdminWorld.app)

    /// The fields of an action's form; a page that holds the form is accessible.
    private func fields(
        _ action: SupportAction, _ more: KeyValuePairs<String, String>, _ browser: Browser
    ) async throws -> [(String, String)] {
        let path = SupportPage.path(action, AdminWorld.customer, in: AdminWorld.app)
        expectAccessible(try await browser.get(path).text, action.rawValue)
        return [
            ("form_token", try await browser.formToken(on: path)), ("action", action.rawValue),
            ("app", AdminWorld.app.text), ("id", AdminWorld.customer), ("item", "Production 100"),
        ] + more.map { ($0.key, $0.value) }
    }

    private func rows(_ world: AdminWorld, _ sql: String) async throws -> [String] {
        try await world.database.query(.init(name: "support \(sql.hashValue)", sql: sql)).map { try $0.text("line") }
    }

    @Test("A subscription is extended, and a token set, by the session's key")
    func changes() async throws {
        try await signedIn { world, browser, apple in
            let token = "3F2504E0-4F89-41D3-9A0C-0305E82C3301"
            let how = try #require(RenewalExtension(days: 7, reason: .outage))
            for (action, more, change) in [
                (
                    SupportAction.extend, ["days": "7", "why": "outage"] as KeyValuePairs,
                    SupportChange.extend(originalTransactionID: "100", how)
                ),
                (
                    .token, ["token": token],
                    .accountToken(originalTransactionID: "100", token: token.lowercased())
                ),
            ] {
                let form = try await fields(action, more, browser)
                let page = try await browser.post(SupportPage.path, form)
                #expect(page.status == .ok && page.text.contains("name=\"confirmed\""), "\(page.text)")
                #expect(page.text.contains("(Production 100)") && page.text.contains(more[0].value))
                expectAccessible(page.text, action.rawValue)
                let before = apple.asked.count
                let done = try await browser.post(SupportPage.path, form + [("confirmed", "yes")])
                #expect(done.headers[.location] == Self.customer + "&result=\(action.rawValue)", "\(done.text)")
                #expect(try await browser.get(Self.customer + "&result=\(action.rawValue)").text.contains(action.done))
                let asked = Array(apple.asked.dropFirst(before))
                #expect(asked.count == 1)
                let again = try await browser.post(SupportPage.path, form + [("confirmed", "yes")])
                #expect(
                    again.headers[.location] == Self.customer + "&result=repeated" && apple.asked.count == before + 1)
                #expect(try await browser.get(Self.customer + "&result=repeated").text.contains("nothing was sent"))
                guard case .change(change, requestID: _) = asked.first else {
                    Issue.record("\(asked)")
                    return
                }
            }
            let audit = try await rows(
                world,
                """
                SELECT concat_ws(' ', split_part(actor, ' ', 1), customer, detail ->> 'call') AS line
                FROM perennial.audit_log WHERE action = 'support.requested' ORDER BY audit_id
                """)
            #expect(audit == ["key \(AdminWorld.customer) extend", "key \(AdminWorld.customer) account_token"])
            #expect(try await rows(world, "SELECT outcome AS line FROM perennial.support_log") == ["done", "done"])
        }
    }

    @Test("A report of consumption needs the tick of consent, and a transaction of this customer")
    func consumption() async throws {
        try await signedIn { _, browser, apple in
            let form = try await fields(
                .consumption, ["delivery": "delivered", "percent": "40", "prefer": "decline", "confirmed": "yes"],
                browser)
            let refused = try await browser.post(SupportPage.path, form)
            #expect(refused.status == .badRequest && refused.text.contains("only with the customer&#39;s consent"))
            let consented = form + [("consented", "yes")]
            for (name, value) in [
                ("item", "Production 101"), ("percent", "101"), ("delivery", "lost"), ("form_token", "0"),
            ] {
                let answer = try await browser.post(
                    SupportPage.path, consented.filter { $0.0 != name } + [(name, value)])
                #expect([.badRequest, .forbidden].contains(answer.status), "\(name)")
            }
            #expect(apple.asked.isEmpty)
            #expect(try await browser.post(SupportPage.path, consented).status == .seeOther)
            #expect(apple.asked.count == 1)
        }
    }

    @Test("Refunds and test notifications are shown at once, and a refusal of Apple's is a sentence")
    func readings() async throws {
        try await signedIn { world, browser, apple in
            apple.say(.done(.transactions([], goesOn: false)))
            let page = try await browser.post(SupportPage.path, try await fields(.refunds, [:], browser))
            #expect(page.status == .ok && page.text.contains("Apple refunded nothing."), "\(page.text)")
            apple.say(.refused("No address (4040007)", code: 4_040_007))
            let path = address(SupportPage.path, ["action": "test", "app": AdminWorld.app.text])
            #expect(try await browser.get("/admin/incidents").text.contains("Send a test notification"))
            let form = [
                ("form_token", try await browser.formToken(on: path)), ("action", "test"),
                ("app", AdminWorld.app.text), ("item", "Sandbox"),
            ]
            #expect(try await browser.post(SupportPage.path, form).text.contains("No address (4040007)"))
            apple.say(.done(.test(token: "t1")))
            let sent = try await browser.post(SupportPage.path, form)
            #expect(sent.text.contains("name=\"token\" value=\"t1\"") && sent.text.contains("Ask what became of it"))
            apple.say(.done(.testStatus(TestNotification(uuid: "u", attempts: [.init(at: 1, result: "TIMED_OUT")]))))
            let fate = try await browser.post(SupportPage.path, form + [("token", "t1")])
            #expect(fate.text.contains("TIMED_OUT") && fate.text.contains("not received"))
            #expect(apple.asked.last == .testStatus(token: "t1"))
            let read =
                "SELECT detail ->> 'call' AS line FROM perennial.audit_log WHERE action = 'support.read' ORDER BY audit_id"
            #expect(
                try await rows(world, read) == ["refunds", "test_notification", "test_notification", "test_status"])
        }
    }
}
