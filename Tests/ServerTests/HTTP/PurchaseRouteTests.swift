import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("From an order to its delivery over HTTP")
struct PurchaseRouteTests {
    private static let app = "/v1/apps/com.example.app"

    /// A ledger whose app sells coins and themes, and a server whose Apple answers with `store`.
    static func serving(
        _ store: ScriptedStore, limits: ServerLimits = ServerLimits(),
        _ body: @escaping @Sendable (ServedLedger, any TestClientProtocol) async throws -> Void
    ) async throws {
        try await ServedLedger.with { served in
            var coins = CatalogProduct(id: "coins", kind: .consumable, entitlements: [])
            coins.credit = CatalogProduct.Credit(name: "gold", units: 100)
            let themes = CatalogProduct(id: "themes", kind: .nonConsumable, entitlements: ["themes"])
            try await served.ledger.apps.applyCatalog([coins, themes], to: ServedLedger.app)
            let server = HTTPServer(
                tracker: .quiet(served.ledger, appStore: store.client), logger: .quiet, limits: limits,
                keys: KeyCache { try await served.ledger.apps.key(withSecret: $0) })
            try await server.application.test(.router) { client in try await body(served, client) }
        }
    }

    /// What Apple says of one-time purchases: id, product, token.
    static func bought(
        _ purchases: [(id: String, product: String, token: String)], secondsAgo: Int64 = 0
    ) -> String {
        let now = Int64(Date.now.timeIntervalSince1970) * 1000 + 1000
        let purchasedAt = now - secondsAgo * 1000
        let rows = purchases.map { one in
            """
            {"product_id":"\(one.product)","quantity":"2","transaction_id":"\(one.id)","original_transaction_id":"\(one.id)",
             "purchase_date_ms":"\(purchasedAt)","original_purchase_date_ms":"\(purchasedAt)","app_account_token":"\(one.token)"}
            """
        }
        return """
            {"status":0,"environment":"Production","receipt":{"bundle_id":"com.example.app","request_date_ms":"\(now)",
             "receipt_creation_date_ms":"\(now)","in_app":[\(rows.joined(separator: ","))]},"latest_receipt_info":[]}
            """
    }

    private func order(
        _ client: any TestClientProtocol, _ served: ServedLedger, key: String = UUID().uuidString,
        _ body: String =
            #"{"customer":"kim","product_id":"coins","quantity":2,"price":"0.99","currency":"usd","device":"d"}"#
    ) async throws -> TestResponse {
        let name = try #require(HTTPField.Name("Idempotency-Key"))
        return try await client.send(
            .post, Self.app + "/orders", secret: served.secret, body: body, headers: key.isEmpty ? [:] : [name: key])
    }

    private func upload(
        _ client: any TestClientProtocol, _ served: ServedLedger, customer: String = "kim", _ more: String = ""
    ) async throws -> TestResponse {
        try await client.send(
            .post, Serving.receipts, secret: served.secret,
            body: #"{"customer":"\#(customer)","receipt":"\#(Sample.receipt())"\#(more)}"#)
    }

    @Test("An order is placed, paid, delivered and acknowledged")
    func whole() async throws {
        let store = ScriptedStore(saying: Self.bought([]))
        try await Self.serving(store) { served, client in
            let placed = try await order(client, served, key: "k")
            #expect(placed.status == .created, "\(String(buffer: placed.body))")
            let made = try AnswerBody(placed)
            let (id, token) = (try #require(made.text("order_id")), try #require(made.text("app_account_token")))
            let again = try await order(client, served, key: "k")
            #expect(again.status == .ok && again.body == placed.body)
            store.say(Self.bought([("p", "coins", token)]))
            let answer = try await upload(
                client, served, #","purpose":"purchase","order":"\#(id)","for_transaction_id":"p""#)
            let said = try AnswerBody(answer)
            #expect(answer.status == .ok && said.text("result") == "succeeded", "\(String(buffer: answer.body))")
            let text = String(buffer: answer.body)
            #expect(text.contains(#""may_finish":["p"],"may_finish_restored":[]"#) && text.contains(#""state":"paid""#))
            let due = try AnswerBody(
                await client.send(.get, Self.app + "/deliveries?state=due&wait=1", secret: served.secret))
            let delivery = try #require(due.list("deliveries")?.first)
            #expect(delivery["units"] as? Int == 200 && delivery["order_id"] as? String == id)
            #expect(delivery["credit"] as? String == "gold" && delivery["customer"] as? String == "kim")
            func balances() async throws -> String {
                let answer = try await client.send(.get, Self.app + "/customers/kim", secret: served.secret)
                return String(buffer: answer.body).firstMatch(of: /"balances":\[.*?\]/).map { String($0.output) } ?? ""
            }
            #expect(try await balances() == #""balances":[]"#, "what is due is no balance yet")
            let number = try #require(delivery["delivery_id"] as? String)
            let path = Self.app + "/deliveries/\(number):ack"
            let first = try AnswerBody(await client.send(.post, path, secret: served.secret, body: "{}"))
            #expect(first.text("state") == "acknowledged" && first.flag("first") == true)
            #expect(
                try await balances()
                    == #""balances":[{"credit":"gold","environment":"Production","units":200}]"#)
            let second = try AnswerBody(await client.send(.post, path, secret: served.secret, body: "{}"))
            #expect(second.flag("first") == false && second.text("acknowledged_at") == first.text("acknowledged_at"))
            let shown = try AnswerBody(await client.send(.get, Self.app + "/orders/\(id)", secret: served.secret))
            #expect(shown.text("state") == "delivered" && shown.text("transaction_id") == "p")
            let list = try AnswerBody(
                await client.send(.get, Self.app + "/customers/kim/orders?state=delivered", secret: served.secret))
            #expect(list.list("orders")?.count == 1)
            let next = try #require(try AnswerBody(try await order(client, served)).text("order_id"))
            let spent = try await upload(
                client, served, #","purpose":"purchase","order":"\#(next)","for_transaction_id":"p""#)
            #expect(try AnswerBody(spent).text("result") == "failed", "what pays one order pays no other one")
        }
    }

    @Test("What is bought by another customer fails, and what the receipt lacks is asked about again")
    func results() async throws {
        let store = ScriptedStore(saying: Self.bought([("p", "themes", ""), ("q", "coins", "")]))
        var limits = ServerLimits()
        limits.absentSeconds = 0.1
        try await Self.serving(store, limits: limits) { served, client in
            let launch = try AnswerBody(try await upload(client, served))
            #expect(launch.text("result") == "succeeded" && launch.list("purchases")?.count == 2)
            func purchase(_ id: String, by customer: String = "kim") async throws -> (HTTPResponse.Status, String?) {
                let response = try await upload(
                    client, served, customer: customer, #","purpose":"purchase","for_transaction_id":"\#(id)""#)
                return (response.status, try AnswerBody(response).text("result"))
            }
            #expect(try await purchase("p") == (.ok, "succeeded"))
            let calls = store.callCount
            #expect(try await purchase("nothing") == (.accepted, "absent"))
            #expect(store.callCount == calls + 2)
            // A consumable stays with its customer, a non-consumable moves.
            #expect(try await purchase("q", by: "bob") == (.ok, "failed"))
            #expect(try await purchase("p", by: "bob") == (.ok, "succeeded"))
            store.say(#"{"status":21003,"environment":"Production"}"#)
            let refused = try await upload(client, served, customer: "eve")
            #expect(refused.status == .unprocessableContent)
            let text = String(buffer: refused.body)
            #expect(text.contains(#""result":"failed""#) && text.contains(#""may_finish":[]"#))
        }
    }

    @Test("An order that another customer's purchase fits fails; a named purchase of before says nothing about it")
    func refused() async throws {
        let store = ScriptedStore(saying: Self.bought([("q", "coins", ""), ("t", "themes", "")]))
        var limits = ServerLimits()
        limits.absentSeconds = 0.1
        try await Self.serving(store, limits: limits) { served, client in
            _ = try await upload(client, served, customer: "bob")
            let made = try AnswerBody(try await order(client, served))
            let id = try #require(made.text("order_id"))
            let foreign = try await upload(client, served, #","purpose":"purchase","order":"\#(id)""#)
            #expect(try AnswerBody(foreign).text("result") == "failed", "\(String(buffer: foreign.body))")
            // What is no payment of the order is not said to be one, although it is the customer's.
            let another = try await upload(
                client, served, #","purpose":"purchase","order":"\#(id)","for_transaction_id":"t""#)
            #expect(try AnswerBody(another).text("result") == "absent", "\(String(buffer: another.body))")
            #expect(another.status == .accepted && another.headers[.location] != nil)
            let old = try await upload(
                client, served, customer: "bob", #","purpose":"purchase","for_transaction_id":"q""#)
            #expect(try AnswerBody(old).text("result") == "succeeded")
            let bad = #","purpose":"purchase","for_transaction_id":"\#(String(repeating: "1", count: 65))""#
            #expect(try await upload(client, served, bad).status == .badRequest)
        }
    }

    @Test("An order's id counts in one spelling; a service cancels what is not paid")
    func spellings() async throws {
        try await Self.serving(ScriptedStore(saying: Self.bought([]))) { served, client in
            let made = try AnswerBody(try await order(client, served))
            let (id, key) = (try #require(made.text("order_id")), try #require(made.text("key")))
            let upper = id.uppercased()
            func report(_ path: String, about id: String, _ state: String) async throws -> TestResponse {
                let proof = HMAC<SHA256>.authenticationCode(
                    for: Data("\(id).\(state).".utf8),
                    using: SymmetricKey(data: try #require(Data(base64Encoded: key)))
                ).map { String(format: "%02x", $0) }.joined()
                return try await client.send(
                    .post, "/v1/orders/\(path)/state", body: #"{"state":"\#(state)","proof":"\#(proof)"}"#)
            }
            let first = try await report(upper, about: upper, "purchasing")
            #expect(String(buffer: first.body) == #"{"order_id":"\#(id)","state":"purchasing"}"#)
            #expect(try await report(upper, about: id, "failed").status == .ok)
            // Ten calls a minute are about the order, however it is spelled.
            var statuses: [HTTPResponse.Status] = []
            for turn in 0..<9 {
                statuses.append(try await report(turn % 2 == 0 ? upper : id, about: id, "failed").status)
            }
            #expect(statuses.dropLast().allSatisfy { $0 == .ok } && statuses.last == .tooManyRequests)
            let cancel = Self.app + "/orders/\(upper):cancel"
            for _ in 0..<2 {
                let answer = try await client.send(.post, cancel, secret: served.secret, body: "{}")
                let cancelled = try AnswerBody(answer)
                #expect(answer.status == .ok && cancelled.text("state") == "cancelled")
                #expect(cancelled.text("order_id") == id)
            }
            #expect(
                try await client.send(.post, cancel, secret: served.secret, body: #"{"why":1}"#).status == .badRequest)
            let unknown = Self.app + "/orders/\(UUID().uuidString):cancel"
            #expect(try await client.send(.post, unknown, secret: served.secret, body: "{}").status == .notFound)
            let reader = try await served.key(.read)
            #expect(try await client.send(.post, cancel, secret: reader, body: "{}").status == .forbidden)
            let shown = try await client.send(.get, Self.app + "/orders/\(upper)", secret: served.secret)
            #expect(try AnswerBody(shown).text("order_id") == id)
        }
    }

    @Test("The number of a delivery and of a receipt is digits alone, without leading zeros")
    func numbers() async throws {
        let store = ScriptedStore(saying: Self.bought([]))
        try await Self.serving(store) { served, client in
            let made = try AnswerBody(try await order(client, served))
            let (id, token) = (try #require(made.text("order_id")), try #require(made.text("app_account_token")))
            store.say(Self.bought([("p", "coins", token)]))
            let answer = try await upload(
                client, served, #","purpose":"purchase","order":"\#(id)","for_transaction_id":"p""#)
            let receipt = try #require(try AnswerBody(answer).text("receipt_id"))
            let due = try AnswerBody(
                await client.send(.get, Self.app + "/deliveries?state=due&wait=1", secret: served.secret))
            let delivery = try #require(due.list("deliveries")?.first?["delivery_id"] as? String)
            for sign in ["+", "%2B", "-", "0", "%20"] {
                let paths: [(HTTPRequest.Method, String, String?)] = [
                    (.get, "/receipts/\(sign)\(receipt)", nil), (.post, "/deliveries/\(sign)\(delivery):ack", "{}"),
                    (.post, "/deliveries/\(sign)\(delivery):skip", #"{"reason":"why"}"#),
                ]
                for (method, path, body) in paths {
                    let answer = try await client.send(method, Self.app + path, secret: served.secret, body: body)
                    #expect(answer.status == .notFound, "\(path): \(String(buffer: answer.body))")
                }
                let list = Self.app + "/receipts?limit=\(sign)1"
                #expect(try await client.send(.get, list, secret: served.secret).status == .badRequest, "\(list)")
            }
            let many = try await client.send(
                .post, Self.app + "/deliveries:ack", secret: served.secret,
                body: #"{"ids":["+\#(delivery)","0\#(delivery)","\#(delivery)"]}"#)
            #expect(
                try AnswerBody(many).list("results")?.map { $0["state"] as? String } == [
                    "unknown", "unknown", "acknowledged",
                ])
        }
    }

    @Test("Bad input gets its problem and changes nothing")
    func badInput() async throws {
        try await Self.serving(ScriptedStore(saying: Self.bought([]))) { served, client in
            for body in [
                #"{"customer":"kim","product_id":"coins","quantity":0}"#,
                #"{"customer":"kim","product_id":"coins","quantity":1000}"#,
                #"{"customer":"kim","product_id":"themes","quantity":2}"#,
                #"{"customer":"kim","product_id":"nothing"}"#, #"{"customer":"","product_id":"coins"}"#,
                #"{"customer":"kim","product_id":"coins","price":"1"}"#, #"{"customer":"kim"}"#,
                #"{"customer":"kim","product_id":"coins","more":1}"#, #"{"customer":"kim","product_id":"\u0000"}"#,
                "rubbish",
            ] {
                #expect(try await order(client, served, body).status == .badRequest, "\(body)")
            }
            #expect(try await order(client, served, key: "").status == .badRequest)
            _ = try await order(client, served, key: "k")
            let other = try await order(client, served, key: "k", #"{"customer":"kim","product_id":"themes"}"#)
            #expect(other.status == .conflict)
            let paths: [(HTTPRequest.Method, String, String?, HTTPResponse.Status)] = [
                (.get, "/orders/nothing", nil, .notFound), (.get, "/orders/\(UUID().uuidString)", nil, .notFound),
                (.get, "/customers/kim/orders?state=gone", nil, .badRequest),
                (.get, "/customers/kim/orders?after=x", nil, .badRequest),
                (.get, "/deliveries?state=gone", nil, .badRequest),
                (.get, "/deliveries?environment=sandbox", nil, .badRequest),
                (.get, "/deliveries?customer=", nil, .badRequest), (.get, "/deliveries?customer=%00", nil, .badRequest),
                (.get, "/deliveries?limit=0", nil, .badRequest), (.get, "/deliveries?unknown=1", nil, .badRequest),
                (.post, "/deliveries/1:ack", "{}", .notFound), (.post, "/deliveries/x:ack", "{}", .notFound),
                (.post, "/deliveries/1:ack", #"{"id":1}"#, .badRequest),
                (
                    .post, "/deliveries:ack", #"{"ids":[\#((0...1_000).map(String.init).joined(separator: ","))]}"#,
                    .badRequest
                ),
                (.post, "/deliveries/1:skip", #"{"reason":" "}"#, .badRequest),
                (.post, "/deliveries/1:skip", #"{"reason":"why"}"#, .notFound),
                (.post, "/receipts", #"{"customer":"kim","receipt":"AA","purpose":"purchase"}"#, .badRequest),
                (.post, "/receipts", #"{"customer":"kim","receipt":"AA","purpose":"gift"}"#, .badRequest),
            ]
            for (method, path, body, status) in paths {
                let response = try await client.send(method, Self.app + path, secret: served.secret, body: body)
                #expect(response.status == status, "\(method) \(path): \(String(buffer: response.body))")
            }
            let unknown = try await client.send(
                .post, Self.app + "/deliveries:ack", secret: served.secret, body: #"{"ids":["7",8,"x"]}"#)
            #expect(
                try AnswerBody(unknown).list("results")?.map { $0["state"] as? String } == [
                    "unknown", "unknown", "unknown",
                ])
            for (scope, path) in [(Scope.read, "/orders"), (.read, "/deliveries:ack"), (.write, "/deliveries/1:skip")] {
                let secret = try await served.key(scope)
                let response = try await client.send(.post, Self.app + path, secret: secret, body: "{}")
                #expect(response.status == .forbidden, "\(path)")
            }
            let foreign = try await served.key(.admin, for: "com.example.other")
            #expect(try await client.send(.get, Self.app + "/deliveries", secret: foreign).status == .forbidden)
        }
    }

    @Test("A device reports with a proof and no API key; an unknown order and a wrong proof get the same answer")
    func reports() async throws {
        try await Self.serving(ScriptedStore(saying: Self.bought([]))) { served, client in
            let made = try AnswerBody(try await order(client, served))
            let (id, key) = (try #require(made.text("order_id")), try #require(made.text("key")))
            func report(_ id: String, _ state: String, proof: String) async throws -> TestResponse {
                try await client.send(
                    .post, "/v1/orders/\(id)/state", body: #"{"state":"\#(state)","proof":"\#(proof)"}"#)
            }
            func proof(_ message: String) throws -> String {
                HMAC<SHA256>.authenticationCode(
                    for: Data(message.utf8), using: SymmetricKey(data: try #require(Data(base64Encoded: key)))
                ).map { String(format: "%02x", $0) }.joined()
            }
            let good = try await report(id, "purchasing", proof: proof("\(id).purchasing."))
            #expect(String(buffer: good.body) == #"{"order_id":"\#(id)","state":"purchasing"}"#)
            let wrong = try await report(id, "cancelled", proof: proof("\(id).failed."))
            let unknown = try await report(UUID().uuidString, "cancelled", proof: proof("x"))
            for response in [wrong, unknown] {
                #expect(response.status == .forbidden)
                #expect(try AnswerBody(response).text("type") == "urn:perennial:problem:proof-refused")
            }
            #expect(try AnswerBody(wrong).text("detail") == AnswerBody(unknown).text("detail"))
            #expect(try await report(id, "gone", proof: "x").status == .badRequest)
            let code = #"{"state":"failed","code":"\u0000","proof":"\#(try proof("\(id).failed.\0"))"}"#
            #expect(try await client.send(.post, "/v1/orders/\(id)/state", body: code).status == .badRequest)
            #expect(try await report(id, "paid", proof: "x").status == .badRequest)
            var statuses: [HTTPResponse.Status] = []
            while statuses.count < 1_000, statuses.last != .tooManyRequests {
                statuses.append(try await report(id, "failed", proof: "x").status)
            }
            #expect(statuses.first == .forbidden && statuses.last == .tooManyRequests)
            #expect(try await report(id, "purchasing", proof: proof("\(id).purchasing.")).status == .ok)
        }
    }
}
