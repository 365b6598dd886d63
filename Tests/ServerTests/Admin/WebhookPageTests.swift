import Hummingbird
import HummingbirdTesting
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("The admin pages show webhooks, send what waits and skip what cannot be taken") struct WebhookPageTests {
    /// A world with a webhook to which the event of a grant waits, signed in.
    private func waiting(_ body: @escaping @Sendable (AdminWorld, Browser) async throws -> Void) async throws {
        try await AdminWorld.with { world in
            _ = try await world.ledger.customers.grant(
                "premium", to: AdminWorld.customer, of: AdminWorld.app, until: nil,
                deciding: ManualDecision(by: "kim", because: "a test"))
            while let placed = try await world.ledger.feed.sequence(), placed > 0 {}
            _ = try await world.ledger.webhooks.add(url: "https://example.com/<hook>?token=secret")
            try await world.database.transaction {
                try $0.script(
                    """
                    UPDATE ledger.webhook SET position = 1;
                    INSERT INTO ledger.webhook_line
                        (webhook_id, stream_of, stream_id, position, attempts, next_at, since, status, reason)
                    SELECT 1, 'customer', customer_id, 1, 4, now() + interval '1 hour', now() - interval '2 days', 503,
                           'It answered 503.'
                    FROM ledger.event WHERE kind = 'entitlements.changed'
                    """)
            }
            try await world.serving { browser in
                try await browser.signIn(world.secret)
                try await body(world, browser)
            }
        }
    }

    @Test("A list, a tile and a page of each webhook, without the URL's query and any secret")
    func pages() async throws {
        try await waiting { _, browser in
            for path in ["/admin/webhooks", "/admin/webhooks/1"] {
                let page = try await browser.get(path).text
                expectAccessible(page, path)
                #expect(page.contains("https://example.com/&lt;hook&gt;") && !page.contains("<hook>"), "\(page)")
                #expect(!page.contains("token=secret") && !page.contains("whsec_"))
            }
            #expect(try await browser.get("/admin/webhooks").text.contains("has an event that waits since"))
            let page = try await browser.get("/admin/webhooks/1").text
            #expect(page.contains("It answered 503.") && page.contains("entitlements.changed"))
            #expect(page.contains(#"<form method="post" action="/admin/webhooks/1" class="stacked">"#))
            #expect(try await browser.get("/admin").text.contains("Webhooks to look at"))
            for missing in ["/admin/webhooks/2", "/admin/webhooks/x"] {
                #expect(try await browser.get(missing).status == .notFound)
            }
        }
    }

    @Test("What waits is sent at once; a skip needs a reason and a confirmation, and both are audited")
    func actions() async throws {
        try await waiting { world, browser in
            let path = "/admin/webhooks/1"
            let token = try await browser.formToken(on: path)
            let refused: [(KeyValuePairs<String, String>, HTTPResponse.Status)] = [
                (["form_token": "", "action": "retry"], .forbidden),
                (["form_token": token, "action": "remove"], .badRequest),
                (["form_token": token, "action": "skip", "position": "1", "reason": "why"], .badRequest),
                (
                    ["form_token": token, "action": "skip", "position": "1", "confirmed": "yes", "reason": " "],
                    .badRequest
                ),
                (
                    ["form_token": token, "action": "skip", "position": "2", "confirmed": "yes", "reason": "y"],
                    .notFound
                ),
            ]
            for (fields, status) in refused {
                #expect(try await browser.post(path, fields).status == status, "\(fields)")
            }
            let retried = try await browser.post(path, ["form_token": token, "action": "retry"])
            #expect(retried.status == .ok && retried.text.contains("What waits is due now"))
            try await world.ledger.webhooks.set(1, isOn: false)
            let off = try await browser.post(path, ["form_token": token, "action": "retry"])
            #expect(off.text.contains("It is off, so nothing is sent") && !off.text.contains("due now"))
            try await world.ledger.webhooks.set(1, isOn: true)
            let next = try #require(try await world.ledger.webhooks.waiting(for: 1).first?.nextAt)
            #expect(next <= (try await world.ledger.now()))
            let skipped = try await browser.post(
                path, ["form_token": token, "action": "skip", "position": "1", "confirmed": "yes", "reason": "<why>"])
            #expect(skipped.status == .ok && skipped.text.contains("No stream waits."))
            #expect(try await world.ledger.webhooks.waiting(for: 1).isEmpty)
            let audit = try await world.database.query(
                .init(
                    name: "audit",
                    sql: """
                        SELECT actor || ' ' || action || COALESCE(' ' || (detail ->> 'reason'), '') AS line
                        FROM perennial.audit_log WHERE action LIKE 'webhook.%' AND actor LIKE 'key %' ORDER BY 1
                        """))
            #expect(
                try audit.map { try $0.text("line") }
                    == ["key 1 webhook.event_skipped <why>", "key 1 webhook.retried", "key 1 webhook.retried"])
        }
    }
}
