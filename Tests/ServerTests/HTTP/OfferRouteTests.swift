import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("Products on offer and signatures of offers over HTTP")
struct OfferRouteTests {
    private static let app = "/v1/apps/com.example.app"
    private static let signer = P256.Signing.PrivateKey()
    private static let answerKeys: Set = [
        "eligible", "reason", "key_id", "nonce", "timestamp", "signature", "app_account_token", "jws",
    ]

    /// A server whose Apple says that kim subscribes to `monthly`, and whose app sells it with an offer.
    private func serving(
        _ body: @escaping @Sendable (ServedLedger, any TestClientProtocol) async throws -> Void
    ) async throws {
        try await ServedLedger.with { served in
            var monthly = CatalogProduct(
                id: "monthly", kind: .autoRenewable, group: "2000", level: 2, period: "P1M", entitlements: [])
            monthly.slot = CatalogProduct.Slot(name: "main", place: 1)
            monthly.offers = [
                PromotionalOffer(id: "back", audience: [.lapsed]), PromotionalOffer(id: "stay", audience: [.current]),
            ]
            var second = CatalogProduct(id: "second", kind: .autoRenewable, group: "3000", entitlements: [])
            second.slot = CatalogProduct.Slot(name: "main", place: 2)
            var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
            coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
            try await served.ledger.apps.applyCatalog(
                [
                    monthly, second, coins, CatalogProduct(id: "loose", kind: .autoRenewable, entitlements: []),
                    CatalogProduct(id: "mystery", entitlements: []),
                ], to: ServedLedger.app)
            let store = ScriptedStore(saying: Sample.verified())
            try await Serving.with(.quiet(served.ledger, appStore: store.client)) { client in
                let sent = try await client.send(
                    .post, Serving.receipts, secret: served.secret, body: Sample.upload(Sample.receipt()))
                try #require(sent.status == .ok, "\(String(buffer: sent.body))")
                try await body(served, client)
            }
        }
    }

    private func storeKey(in served: ServedLedger) async throws {
        let key = try ConnectKey(pem: Self.signer.pemRepresentation, id: "KEY", issuer: "issuer")
        try await served.ledger.apps.storeOfferKey(key, of: ServedLedger.app)
    }

    private func body(
        customer: String = "kim", product: String = "monthly", offer: String = "stay", form: String = "classic",
        _ more: String = ""
    ) -> String {
        """
        {"customer":"\(customer)","product_id":"\(product)","offer_id":"\(offer)","form":"\(form)"\(more)}
        """
    }

    @Test("Products have every key, for the customer who asks")
    func products() async throws {
        try await serving { served, client in
            func list(_ query: String) async throws -> String {
                let response = try await client.send(.get, Self.app + "/products" + query, secret: served.secret)
                #expect(response.status == .ok)
                return String(buffer: response.body)
            }
            let others = """
                {"credit":"gold","group":null,"introductory_eligible":false,"kind":"consumable","level":null,"offers":[],\
                "owned":false,"period":null,"product_id":"coins","replaces":null,"units":100},\
                {"credit":null,"group":null,"introductory_eligible":null,"kind":"auto_renewable","level":null,"offers":[],\
                "owned":false,"period":null,"product_id":"loose","replaces":null,"units":null}
                """
            func monthly(owned: Bool, introductory: Bool, _ back: String, _ stay: String) -> String {
                """
                {"credit":null,"group":"2000","introductory_eligible":\(introductory),"kind":"auto_renewable","level":2,"offers":[\
                {"eligible":false,"offer_id":"back","reason":"\(back)"},\(stay)],\
                "owned":\(owned),"period":"P1M","product_id":"monthly","replaces":null,"units":null}
                """
            }
            let kims = monthly(
                owned: true, introductory: false, "not_lapsed",
                #"{"eligible":true,"offer_id":"stay","reason":null}"#)
            let newcomers = monthly(
                owned: false, introductory: true, "never_subscribed",
                #"{"eligible":false,"offer_id":"stay","reason":"never_subscribed"}"#)
            #expect(try await list("?customer=kim") == #"{"products":[\#(others),\#(kims)]}"#)
            for query in ["", "?customer=stranger", "?customer=stranger&device=tablet"] {
                #expect(try await list(query) == #"{"products":[\#(others),\#(newcomers)]}"#)
            }
            let name = try #require(HTTPField.Name("Idempotency-Key"))
            let order = #"{"customer":"kim","product_id":"coins","device":"my tablet"}"#
            _ = try await client.send(
                .post, Self.app + "/orders", secret: served.secret, body: order, headers: [name: "k"])
            let beside = try await list("?customer=bob&device=my%20tablet")
            #expect(beside.contains(#""product_id":"second""#) && !beside.contains(#""product_id":"monthly""#))
        }
    }

    @Test("An offer is signed in both forms, and the public key verifies each")
    func signed() async throws {
        try await serving { served, client in
            try await storeKey(in: served)
            func sign(_ form: String, _ more: String = "") async throws -> AnswerBody {
                let response = try await client.send(
                    .post, Self.app + "/offers:sign", secret: served.secret, body: body(form: form, more))
                #expect(response.status == .ok, "\(String(buffer: response.body))")
                return try AnswerBody(response)
            }
            let name = try #require(HTTPField.Name("Idempotency-Key"))
            let placed = try AnswerBody(
                try await client.send(
                    .post, Self.app + "/orders", secret: served.secret,
                    body: #"{"customer":"kim","product_id":"monthly"}"#, headers: [name: "k"]))
            let (id, token) = (try #require(placed.text("order_id")), try #require(placed.text("app_account_token")))
            for (more, token) in [("", nil), (#","order":null"#, nil), (#","order":"\#(id)""#, token)] {
                let made = try await sign("classic", more)
                #expect(made.names == Self.answerKeys && made.flag("eligible") == true && made.text("reason") == nil)
                #expect(made.text("key_id") == "KEY" && made.text("jws") == nil)
                #expect(made.text("app_account_token") == token)
                let (nonce, timestamp) = (try #require(made.text("nonce")), try #require(made.integer("timestamp")))
                let message = [
                    "com.example.app", "KEY", "monthly", "stay", token ?? "", nonce, "\(timestamp)",
                ].joined(separator: "\u{2063}")
                let base64 = try #require(made.text("signature"))
                let signature = try P256.Signing.ECDSASignature(
                    derRepresentation: try #require(Data(base64Encoded: base64)))
                #expect(Self.signer.publicKey.isValidSignature(signature, for: Data(message.utf8)))
            }
            let made = try await sign("jws", #","order":"\#(id)""#)
            #expect(made.names == Self.answerKeys && made.flag("eligible") == true && made.text("signature") == nil)
            #expect(made.text("app_account_token") == token && made.integer("timestamp") != nil)
            let parts = try #require(made.text("jws")).split(separator: ".").map(String.init)
            try #require(parts.count == 3)
            var raw = parts[2].replacing("-", with: "+").replacing("_", with: "/")
            raw += String(repeating: "=", count: (4 - raw.utf8.count % 4) % 4)
            let signature = try P256.Signing.ECDSASignature(
                rawRepresentation: try #require(Data(base64Encoded: raw)))
            #expect(
                Self.signer.publicKey.isValidSignature(signature, for: Data("\(parts[0]).\(parts[1])".utf8)))
        }
    }

    @Test("An offer that the customer may not have is not signed, and the reason is the only word")
    func refused() async throws {
        try await serving { served, client in
            try await storeKey(in: served)
            for (body, reason) in [
                (body(customer: "stranger"), "never_subscribed"), (body(offer: "back", form: "jws"), "not_lapsed"),
            ] {
                let response = try await client.send(
                    .post, Self.app + "/offers:sign", secret: served.secret, body: body)
                #expect(
                    String(buffer: response.body) == """
                        {"app_account_token":null,"eligible":false,"jws":null,"key_id":null,"nonce":null,\
                        "reason":"\(reason)","signature":null,"timestamp":null}
                        """)
            }
            let known = try await served.database.query(
                Statement(name: "customers", sql: "SELECT name FROM ledger.customer"))
            #expect(try known.map { try $0.text("name") } == ["kim"])
        }
    }

    @Test("Bad input and a missing key get their problems")
    func badInput() async throws {
        try await serving { served, client in
            let keyless = try await client.send(
                .post, Self.app + "/offers:sign", secret: served.secret, body: body())
            try expectProblem(keyless, "not-found", status: 404)
            #expect(try AnswerBody(keyless).text("detail")?.contains("`perennial app offer-key") == true)
            try await storeKey(in: served)
            let long = String(repeating: "x", count: 256)
            let bodies: [(String, HTTPResponse.Status)] = [
                (body(product: "nothing"), .notFound), (body(offer: "nothing"), .notFound),
                (body(product: "second"), .notFound), (body(#","order":"nothing""#), .notFound),
                (body(#","order":"\#(UUID().uuidString)""#), .notFound), (body(form: "text"), .badRequest),
                (body(form: "CLASSIC"), .badRequest), (body(customer: ""), .badRequest),
                (body(customer: long), .badRequest), (body(product: long), .badRequest),
                (body(offer: long), .badRequest), (body(offer: ""), .badRequest),
                (body(#","device":"d""#), .badRequest), (#"{"customer":"kim"}"#, .badRequest), ("rubbish", .badRequest),
            ]
            for (body, status) in bodies {
                let response = try await client.send(
                    .post, Self.app + "/offers:sign", secret: served.secret, body: body)
                #expect(response.status == status, "\(body): \(String(buffer: response.body))")
            }
            for query in [
                "?customer=", "?device=", "?customer=\(long)", "?device=\(String(repeating: "x", count: 4_097))",
                "?custmer=kim", "?at=now",
            ] {
                let response = try await client.send(.get, Self.app + "/products" + query, secret: served.secret)
                try expectProblem(response, "invalid", status: 400)
            }
            let elsewhere = try await client.send(.get, "/v1/apps/no.app/products", secret: served.secret)
            try expectProblem(elsewhere, "unknown-app", status: 404)
        }
    }

    @Test(
        "A key of the scope read lists products, one of the scope write signs offers",
        arguments: [
            (TestKey.read, "GET", "/products", 503), (.write, "GET", "/products", 503),
            (.otherApp, "GET", "/products", 403), (.unknown, "GET", "/products", 401),
            (.read, "POST", "/offers:sign", 403), (.write, "POST", "/offers:sign", 400),
            (.admin, "POST", "/offers:sign", 400), (.otherApp, "POST", "/offers:sign", 403),
            (.unknown, "POST", "/offers:sign", 401), (.write, "GET", "/offers:sign", 405),
        ])
    func scopes(_ key: TestKey, _ method: String, _ path: String, _ status: Int) async throws {
        let method = try #require(HTTPRequest.Method(rawValue: method))
        let response = try await Serving.withoutDatabase { client in
            try await client.send(method, Self.app + path, secret: key.secret)
        }
        #expect(response.status.code == status)
    }
}
