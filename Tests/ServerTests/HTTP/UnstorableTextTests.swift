import Hummingbird
import HummingbirdTesting
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("A text that PostgreSQL cannot store is its sender's fault, whatever place it comes in")
struct UnstorableTextTests {
    /// A text as an address, a form or a body writes it, and whether no place may take it.
    private typealias Odd = (text: String, isRefused: Bool)

    private static let long = String(repeating: "a", count: 10_000)
    private static let inAddresses: [Odd] = [
        ("a%00b", true), ("%00%CC%81", true), ("%01%1B%7F%C2%85", false), ("%FF", true), (long, false),
    ]
    /// What is not UTF-8 in a form is refused or replaced by a mark, as the field has it.
    private static let inForms: [Odd] = [
        ("a%00b", true), ("%00%CC%81", true), ("%FF", false), ("%01%1B%7F%C2%85", false), (long, false),
    ]
    private static let inBodies: [Odd] = [
        (#"a\u0000b"#, true), (#"\u0000\u0301"#, true), (#"a\udfffb"#, true),
        (#"\u0001\u001b\u007f\u0085"#, false), (long, false),
    ]

    private static let app = "/v1/apps/com.example.app"

    /// The addresses of the API, with ODD for the text.
    private static let read = [
        "/v1/apps/ODD/customers/kim", "/v1/apps/ODD/customers/kim/entitlements", "/v1/apps/ODD/orders/1",
        "\(app)/customers?prefix=ODD", "\(app)/customers?after=ODD", "\(app)/customers?limit=ODD",
        "\(app)/customers/ODD", "\(app)/customers/ODD/entitlements", "\(app)/customers/ODD/orders",
        "\(app)/customers/kim/entitlements?at=ODD", "\(app)/customers/kim/entitlements?known_at=ODD",
        "\(app)/customers/kim/orders?state=ODD", "\(app)/customers/kim/orders?after=ODD",
        "\(app)/subscriptions?environment=ODD", "\(app)/subscriptions?state=ODD",
        "\(app)/subscriptions?product_id=ODD", "\(app)/subscriptions?after=ODD",
        "\(app)/subscriptions?after=Production.ODD", "\(app)/receipts?customer=ODD", "\(app)/receipts?after=ODD",
        "\(app)/receipts/ODD", "\(app)/orders/ODD", "\(app)/products?customer=ODD", "\(app)/products?device=ODD",
        "\(app)/deliveries?customer=ODD", "\(app)/deliveries?state=ODD", "\(app)/deliveries?after=ODD",
        "\(app)/deliveries?environment=ODD", "\(app)/deliveries?wait=ODD", "/v1/events?after=ODD",
        "/v1/events?feed=ODD", "/v1/webhooks/ODD",
    ]
    private static let deleted = [
        "\(app)/customers/ODD/grants?entitlement=pro&actor=a&reason=r",
        "\(app)/customers/kim/grants?entitlement=ODD&actor=a&reason=r",
        "\(app)/customers/kim/grants?entitlement=pro&actor=ODD&reason=r",
        "\(app)/customers/kim/grants?entitlement=pro&actor=a&reason=ODD", "/v1/webhooks/ODD",
    ]
    private static let posted: [String: String] = [
        "/v1/apps/ODD/entitlements:batch": #"{"customers":["kim"]}"#, "\(app)/orders/ODD:cancel": "{}",
        "\(app)/deliveries/ODD:ack": "{}", "\(app)/deliveries/ODD:skip": #"{"reason":"r"}"#,
        "\(app)/customers/ODD/grants": #"{"entitlement":"pro","actor":"a","reason":"r","force":true}"#,
        "/v1/webhooks/ODD:test": "{}", "/v1/notifications/ODD": #"{"notification_type":"RENEWAL"}"#,
        "/v1/orders/ODD/state": #"{"state":"failed","proof":"p"}"#,
        "/v1/orders/ODD/receipt": #"{"receipt":"MIAG","proof":"p"}"#,
    ]

    /// The bodies of the API by their paths, with ODD for the text.
    private static func bodies(webhook: Int32) -> [String: [String]] {
        let order = "/v1/orders/3f2504e0-4f89-41d3-9a0c-0305e82c3301"
        let sent = #"{"customer":"kim","receipt":"\#(Sample.receipt())""#
        return [
            "\(app)/receipts": [
                #"{"customer":"ODD","receipt":"\#(Sample.receipt())"}"#, #"{"customer":"kim","receipt":"ODD"}"#,
                #"{"customer":"kim","signed_transaction":"ODD"}"#, #"{"customer":"kim","transaction_id":"ODD"}"#,
                sent + #","storefront":"ODD"}"#, sent + #","price":"ODD"}"#, sent + #","currency":"ODD"}"#,
                sent + #","purpose":"ODD"}"#, sent + #","order":"ODD"}"#, sent + #","for_transaction_id":"ODD"}"#,
            ],
            "\(app)/entitlements:batch": [#"{"customers":["ODD"]}"#, #"{"customers":["kim"],"at":"ODD"}"#],
            "\(app)/orders": [
                #"{"customer":"ODD","product_id":"themes"}"#, #"{"customer":"kim","product_id":"ODD"}"#,
                #"{"customer":"kim","product_id":"themes","currency":"ODD"}"#,
                #"{"customer":"kim","product_id":"themes","device":"ODD"}"#,
            ],
            "\(app)/offers:sign": [
                #"{"customer":"ODD","product_id":"themes","offer_id":"o","form":"jws"}"#,
                #"{"customer":"kim","product_id":"ODD","offer_id":"o","form":"jws"}"#,
                #"{"customer":"kim","product_id":"themes","offer_id":"ODD","form":"jws"}"#,
                #"{"customer":"kim","product_id":"themes","offer_id":"o","form":"jws","order":"ODD"}"#,
            ],
            "\(app)/customers/kim/grants": [
                #"{"entitlement":"ODD","actor":"a","reason":"r","force":true}"#,
                #"{"entitlement":"pro","actor":"ODD","reason":"r","force":true}"#,
                #"{"entitlement":"pro","actor":"a","reason":"ODD","force":true}"#,
                #"{"entitlement":"pro","actor":"a","reason":"r","force":true,"until":"ODD"}"#,
            ],
            "\(app)/deliveries/1:skip": [#"{"reason":"ODD"}"#],
            "/v1/webhooks": [#"{"url":"ODD"}"#]
                + [#""app":"ODD""#, #""kinds":["ODD"]"#, #""environment":"ODD""#, #""secret":"ODD""#, #""from":"ODD""#]
                .map { #"{"url":"https://example.com/",\#($0)}"# },
            "/v1/webhooks/\(webhook)": [#"{"url":"ODD"}"#, #"{"state":"ODD"}"#],
            "/v1/webhooks/\(webhook):rotate-secret": [#"{"secret":"ODD"}"#],
            "/v1/webhooks/\(webhook):replay": [#"{"from":"ODD"}"#],
            "/v1/webhooks/\(webhook):skip": [#"{"position":1,"reason":"ODD"}"#],
            "\(order)/state": [
                #"{"state":"failed","code":"ODD","proof":"p"}"#, #"{"state":"failed","proof":"ODD"}"#,
            ],
            "\(order)/receipt": [#"{"receipt":"MIAG","proof":"ODD"}"#],
        ]
    }

    private func expect(_ answer: TestResponse, to odd: Odd, at place: String) {
        let code = answer.status.code
        let short = odd.text.prefix(20).debugDescription
        #expect(code < 500 && (code >= 400 || !odd.isRefused), "\(code) for \(short) at \(place): \(answer.text)")
    }

    @Test("In the API")
    func api() async throws {
        try await ServedLedger.with { served in
            let themes = CatalogProduct(id: "themes", kind: .nonConsumable, entitlements: ["themes"])
            try await served.ledger.apps.applyCatalog([themes], to: ServedLedger.app)
            let webhook = try await served.ledger.webhooks.add(url: "https://example.com/").webhook.id
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                var addresses: [(HTTPRequest.Method, String, String?)] = Self.read.map { (.get, $0, nil) }
                addresses += Self.deleted.map { (.delete, $0, nil) }
                addresses += Self.posted.map { (.post, $0, $1) }
                for odd in Self.inAddresses {
                    for (method, place, body) in addresses {
                        let path = place.replacing("ODD", with: odd.text)
                        let answer = try await client.send(method, path, secret: served.secret, body: body)
                        expect(answer, to: odd, at: "\(method) \(place)")
                    }
                }
                for odd in Self.inBodies {
                    for (path, places) in Self.bodies(webhook: webhook) {
                        let method: HTTPRequest.Method = path.hasSuffix("/webhooks/\(webhook)") ? .patch : .post
                        for place in places {
                            let body = place.replacing("ODD", with: odd.text)
                            let answer = try await client.send(
                                method, path, secret: served.secret, body: body,
                                headers: [.idempotencyKey: "\(body.hashValue)"])
                            expect(answer, to: odd, at: "\(path) \(place)")
                        }
                    }
                }
            }
        }
    }

    /// The addresses of pages, with ODD for the text.
    private static func pages(receipt: ReceiptID) -> [String] {
        let known = CustomerPage.path(of: AdminWorld.customer, in: AdminWorld.app)
        return [
            "/admin?app=ODD", "/admin?environment=ODD", "/admin?days=ODD", "/admin/retention?app=ODD",
            "/admin/cohorts?app=ODD", "/admin/trials?environment=ODD", "/admin/customers?q=ODD",
            "/admin/customers?app=ODD", "/admin/customers?state=ODD", "/admin/customers?product=ODD",
            "/admin/customers?spent=ODD", "/admin/customers?after=ODD", "/admin/customer?app=ODD&id=kim",
            "/admin/customer?app=com.example.app&id=ODD", "\(known)&result=ODD",
            "/admin/customer/act?action=ODD&app=com.example.app&id=kim",
            "/admin/customer/act?action=grant&app=ODD&id=kim",
            "/admin/customer/act?action=grant&app=com.example.app&id=ODD",
            ActionPage.path(.grant, AdminWorld.customer, in: AdminWorld.app) + "&entitlement=ODD",
            "/admin/support?action=ODD&app=com.example.app&id=kim", "/admin/support?action=refunds&app=ODD&id=kim",
            "/admin/support?action=refunds&app=com.example.app&id=ODD", "/admin/support?action=test&app=ODD",
            "/admin/receipts/ODD", "/admin/receipts/\(receipt)?result=ODD", "/admin/deliveries/ODD",
            "/admin/webhooks/ODD", "/admin/sign-in?to=ODD",
        ]
    }

    /// The forms of pages. Each field in turn has the text. A merge comes last: it changes whom the id means.
    private static func forms(webhook: Int32) -> [(path: String, fields: [String: String])] {
        let customer = ["app": AdminWorld.app.text, "id": AdminWorld.customer]
        let decision = ["actor": "lee", "reason": "a test", "confirmed": "yes"]
        let report = ["delivery": "delivered", "percent": "1", "prefer": "", "consented": "yes"]
        let skip = ["action": "skip", "position": "1", "reason": "r", "confirmed": "yes"]
        let renewal = ["days": "7", "why": "outage"]
        let forms: [(String, [String: String], [String: String], [String: String])] = [
            (ActionPage.path, ["action": "grant", "entitlement": "monthly", "until": ""], customer, decision),
            (SupportPage.path, ["action": "extend", "item": "Production 100"], customer, renewal),
            (SupportPage.path, ["action": "consumption", "item": "Production 100"], customer, report),
            (SupportPage.path, ["action": "token", "item": "Production 100", "token": ""], customer, [:]),
            ("/admin/webhooks/\(webhook)", skip, [:], [:]),
            ("/admin/session", ["key": "", "to": "/admin/customers"], [:], [:]),
            (ActionPage.path, ["action": "merge", "into": "bob"], customer, decision),
        ]
        return forms.map { path, own, whose, how in (path, own.merging(whose) { $1 }.merging(how) { $1 }) }
    }

    @Test("In the pages")
    func admin() async throws {
        try await AdminWorld.with { world in
            let webhook = try await world.ledger.webhooks.add(url: "https://example.com/").webhook.id
            try await world.serving { browser, receipt in
                try await browser.signIn(world.secret)
                for odd in Self.inAddresses {
                    for place in Self.pages(receipt: receipt) {
                        let answer = try await browser.get(place.replacing("ODD", with: odd.text))
                        expect(answer, to: odd, at: place)
                        #expect(answer.headers[.contentType] == "text/html; charset=utf-8", "\(place)")
                    }
                }
                let form = ActionPage.path(.grant, AdminWorld.customer, in: AdminWorld.app)
                let token = try await browser.formToken(on: form)
                for (path, fields) in Self.forms(webhook: webhook) {
                    for (name, odd) in fields.keys.sorted().flatMap({ name in Self.inForms.map { (name, $0) } }) {
                        let others = fields.filter { $0.key != name }.map { "\($0)=\($1.percentEncoded)" }
                        let body = (others + ["form_token=\(token)", "\(name)=\(odd.text)"]).joined(separator: "&")
                        let answer = try await browser.client.executeRequest(
                            uri: path, method: .post,
                            headers: [
                                .cookie: browser.cookie ?? "", .contentType: "application/x-www-form-urlencoded",
                            ], body: ByteBuffer(string: body))
                        expect(answer, to: odd, at: "\(path) \(fields["action"] ?? "") \(name)")
                    }
                }
            }
        }
    }
}
