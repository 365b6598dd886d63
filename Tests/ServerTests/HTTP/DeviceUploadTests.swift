import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Subscriptions
import Synchronization
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("A device sends a receipt for its order")
struct DeviceUploadTests {
    private struct Placed {
        let id: String
        let key: SymmetricKey

        func proof(of receipt: String) throws -> String {
            let digest = SHA256.hash(data: try #require(Data(base64Encoded: receipt)))
                .map { String(format: "%02x", $0) }.joined()
            return HMAC<SHA256>.authenticationCode(for: Data("\(id).\(digest)".utf8), using: key)
                .map { String(format: "%02x", $0) }.joined()
        }
    }

    private func order(
        _ client: any TestClientProtocol, _ served: ServedLedger, by customer: String = "kim",
        of product: String = #""coins","quantity":2"#
    ) async throws -> Placed {
        let name = try #require(HTTPField.Name("Idempotency-Key"))
        let answer = try AnswerBody(
            try await client.send(
                .post, "/v1/apps/com.example.app/orders", secret: served.secret,
                body: #"{"customer":"\#(customer)","product_id":\#(product)}"#,
                headers: [name: UUID().uuidString]))
        let key = try #require(answer.text("key"))
        return Placed(
            id: try #require(answer.text("order_id")),
            key: SymmetricKey(data: try #require(Data(base64Encoded: key))))
    }

    private func send(
        _ receipt: String, for order: String, proof: String, _ client: any TestClientProtocol
    ) async throws -> TestResponse {
        try await client.send(
            .post, "/v1/orders/\(order)/receipt", body: #"{"receipt":"\#(receipt)","proof":"\#(proof)"}"#)
    }

    @Test(
        "The answer shows the order's own data: its transaction and delivery, no name and nothing else of the receipt")
    func ownData() async throws {
        let store = ScriptedStore(saying: PurchaseRouteTests.bought([]))
        try await PurchaseRouteTests.serving(store) { served, client in
            let order = try await order(client, served)
            store.say(PurchaseRouteTests.bought([("p", "coins", ""), ("t", "themes", "")]))
            let answer = try await send(
                Sample.receipt(), for: order.id, proof: order.proof(of: Sample.receipt()), client)
            let text = String(buffer: answer.body)
            let body = try AnswerBody(answer)
            #expect(answer.status == .ok && body.text("result") == "succeeded", "\(text)")
            #expect(text.contains(#""may_finish":["p"],"may_finish_restored":[]"#))
            #expect(text.contains(#""state":"paid""#) && text.contains(#""cause":"proof""#))
            let deliveries = try #require(body.list("deliveries"))
            #expect(deliveries.count == 1 && deliveries[0]["order_id"] as? String == order.id)
            #expect(!text.contains("kim") && !text.contains("themes"))
            #expect(!text.contains("subscriptions") && !text.contains("purchases") && !text.contains("entitlements"))
        }
    }

    @Test(
        "A device may finish a non-consumable, whatever quantity Apple states, also where its customer owns it already")
    func nonConsumable() async throws {
        // It was bought before both orders, so it pays the one next to it.
        let store = ScriptedStore(saying: PurchaseRouteTests.bought([("t", "themes", "")], secondsAgo: 5))
        try await PurchaseRouteTests.serving(store) { served, client in
            for state in ["paid", "delivered"] {
                let order = try await order(client, served, of: #""themes""#)
                let answer = try await send(
                    Sample.receipt(), for: order.id, proof: order.proof(of: Sample.receipt()), client)
                let text = String(buffer: answer.body)
                #expect(text.contains(#""may_finish":["t"],"may_finish_restored":["t"]"#), "\(text)")
                #expect(text.contains(#""state":"\#(state)""#) && text.contains(#""result":"succeeded""#), "\(text)")
            }
        }
    }

    @Test("What is bought again for an order of what was owned already pays it, and the device may finish it")
    func boughtAgain() async throws {
        let store = ScriptedStore(saying: PurchaseRouteTests.bought([("old", "themes", "")], secondsAgo: 86_400))
        try await PurchaseRouteTests.serving(store) { served, client in
            let launched = try await client.send(
                .post, "/v1/apps/com.example.app/receipts", secret: served.secret,
                body: #"{"customer":"kim","receipt":"\#(Sample.receipt())"}"#)
            #expect(launched.status == .ok)
            let order = try await order(client, served, of: #""themes""#)
            store.say(PurchaseRouteTests.bought([("new", "themes", "")]))
            let receipt = Sample.receipt(1)
            let answer = try await send(receipt, for: order.id, proof: order.proof(of: receipt), client)
            let text = String(buffer: answer.body)
            #expect(text.contains(#""may_finish":["new"]"#) && text.contains(#""cause":"proof""#), "\(text)")
            #expect(text.contains(#""state":"paid""#) && text.contains(#""result":"succeeded""#), "\(text)")
        }
    }

    @Test(
        "A split while Apple answers keeps no device from its success, nor does one after another name was given it",
        arguments: [false, true])
    func split(isDelivered: Bool) async throws {
        let asked = Mutex<@Sendable () async -> String> { "" }
        let store = ScriptedStore { _ in .saying(await asked.withLock { $0 }()) }
        try await PurchaseRouteTests.serving(store) { served, client in
            let body = PurchaseRouteTests.bought([("p", "coins", "")])
            asked.withLock { $0 = { body } }
            let (customers, app) = (served.ledger.customers, ServedLedger.app)
            let decision = try ManualDecision(by: "eve", because: "logged in")
            let order = try await order(client, served)
            for number in 0..<3 as Range<Int> {
                if number == 1 {
                    _ = try await customers.merge("kim", into: "bob", of: app, deciding: decision)
                    if isDelivered {
                        let due = try await served.ledger.deliveries.read(
                            of: app, state: .due, after: 0, limit: 10)
                        _ = try await served.ledger.deliveries.acknowledge(due.deliveries.map(\.id), of: app)
                    }
                    asked.withLock {
                        $0 = {
                            _ = try? await customers.split("kim", of: app, deciding: decision)
                            return body
                        }
                    }
                }
                let receipt = Sample.receipt(number)
                let answer = try await send(receipt, for: order.id, proof: order.proof(of: receipt), client)
                let text = String(buffer: answer.body)
                #expect(text.contains(#""result":"succeeded""#) && text.contains(#""may_finish":["p"]"#), "\(text)")
            }
            let read = try #require(try await served.ledger.orders.read(order.id, of: app))
            #expect(read.customer == "kim" && read.state == (isDelivered ? .delivered : .paid))
        }
    }

    @Test("Unknown orders and wrong proofs get the same answer and store nothing; rubbish is no receipt")
    func refusals() async throws {
        let store = ScriptedStore(saying: PurchaseRouteTests.bought([("p", "coins", "")]))
        try await PurchaseRouteTests.serving(store) { served, client in
            let (order, other) = (try await order(client, served), try await order(client, served, by: "bob"))
            let receipt = Sample.receipt()
            let refused = [
                try await send(receipt, for: order.id, proof: try order.proof(of: Sample.receipt(1)), client),
                try await send(receipt, for: order.id, proof: try other.proof(of: receipt), client),
                try await send(receipt, for: order.id, proof: try order.proof(of: receipt).uppercased(), client),
                try await send(receipt, for: UUID().uuidString, proof: try order.proof(of: receipt), client),
                try await send(receipt, for: "nothing", proof: "", client),
            ]
            for response in refused {
                #expect(response.status == .forbidden)
                #expect(try AnswerBody(response).text("type") == "urn:perennial:problem:proof-refused")
                #expect(try AnswerBody(response).text("detail") == AnswerBody(refused[0]).text("detail"))
            }
            let rubbish = try await send("!!", for: order.id, proof: "", client)
            #expect(rubbish.status == .unprocessableContent)
            let large = String(repeating: "A", count: DeviceCalls.bodyBytesMax)
            #expect(try await send(large, for: order.id, proof: "", client).status == .contentTooLarge)
            #expect(try await served.ledger.customers.receipts().isEmpty)
            #expect(store.callCount == 0)
        }
    }

    /// All devices behind a proxy have one address.
    @Test("A proof passes whatever others from the same address did, within its order's own rate")
    func strangersFailures() async throws {
        let store = ScriptedStore(saying: PurchaseRouteTests.bought([("p", "coins", "")]))
        try await PurchaseRouteTests.serving(store) { served, client in
            let (order, other) = (try await order(client, served), try await order(client, served, by: "bob"))
            /// Fails until the address may fail no more; each second gives back one failure.
            func exhaust() async throws -> Int {
                for number in 0..<1_000 {
                    let unknown = number % 2 == 0 ? UUID().uuidString : order.id
                    let status = try await send(Sample.receipt(), for: unknown, proof: "wrong", client).status
                    if status == .tooManyRequests { return number }
                    #expect(status == .forbidden)
                }
                return .max
            }
            #expect((60..<1_000).contains(try await exhaust()))
            let proof = try order.proof(of: Sample.receipt())
            var statuses: [HTTPResponse.Status] = []
            while statuses.count < 100, statuses.last != .tooManyRequests {
                statuses.append(try await send(Sample.receipt(), for: order.id, proof: proof, client).status)
            }
            #expect(statuses.count > 10 && statuses.last == .tooManyRequests && statuses.first == .ok, "\(statuses)")
            _ = try await exhaust()
            let another = try await send(
                Sample.receipt(), for: other.id, proof: other.proof(of: Sample.receipt()), client)
            #expect(another.status != .tooManyRequests && another.status != .forbidden)
            let huge = String(repeating: "A", count: DeviceCalls.bodyBytesMax)
            var refusedUnread = false
            for _ in 0..<20 where !refusedUnread {
                _ = try await exhaust()
                let status = try await send(huge, for: UUID().uuidString, proof: "", client).status
                refusedUnread = status == .tooManyRequests
            }
            #expect(refusedUnread)
        }
    }

    @Test("A purchase that Apple's answer lacks is asked about again, and a temporary problem of Apple's too")
    func askedAgain() async throws {
        var limits = ServerLimits()
        limits.absentSeconds = 0.2
        let store = ScriptedStore(saying: PurchaseRouteTests.bought([]))
        try await PurchaseRouteTests.serving(store, limits: limits) { served, client in
            let order = try await order(client, served)
            let proof = try order.proof(of: Sample.receipt())
            let absent = try await send(Sample.receipt(), for: order.id, proof: proof, client)
            #expect(absent.status == .accepted && store.callCount == 2)
            #expect(try AnswerBody(absent).text("result") == "absent")
            #expect(try AnswerBody(absent).text("advice") == "refresh_receipt")
            for (body, calls, retry) in [
                (#"{"status":21155}"#, 2, true), (#"{"status":21155,"is-retryable":"0"}"#, 1, true),
                (#"{"status":21009}"#, 1, true),
            ] {
                store.say(body)
                let before = store.callCount
                let answer = try await send(Sample.receipt(), for: order.id, proof: proof, client)
                #expect(answer.status == .accepted && store.callCount == before + calls, "\(body)")
                #expect((try AnswerBody(answer).text("advice") == "retry") == retry)
            }
            async let waiting = send(Sample.receipt(), for: order.id, proof: proof, client)
            store.say(#"{"status":21104}"#)
            try await Task.sleep(for: .seconds(0.1))
            store.say(PurchaseRouteTests.bought([("p", "coins", "")]))
            let found = try await waiting
            #expect(found.status == .ok)
            #expect(try AnswerBody(found).text("result") == "succeeded")
        }
    }

    @Test("A refusal that may pass is to be retried, another one is final")
    func refusedByApple() async throws {
        let store = ScriptedStore(saying: #"{"status":21003,"environment":"Production"}"#)
        try await PurchaseRouteTests.serving(store) { served, client in
            let order = try await order(client, served)
            let proof = try order.proof(of: Sample.receipt())
            let soon = try await send(Sample.receipt(), for: order.id, proof: proof, client)
            #expect(soon.status == .unprocessableContent)
            #expect(try AnswerBody(soon).text("result") == "failed" && AnswerBody(soon).text("advice") == "retry")
            #expect(String(buffer: soon.body).contains(#""retry_after_s":60"#))
            store.say(#"{"status":21010,"is-retryable":false}"#)
            let final = try await send(Sample.receipt(), for: order.id, proof: proof, client)
            #expect(String(buffer: final.body).contains(#""advice":null"#))
            #expect(String(buffer: final.body).contains(#""retry_after_s":null"#))
        }
    }

    @Test("While Apple refuses the secret a device hears that the check is pending and when to come again, and no more")
    func refusedSecret() async throws {
        let store = ScriptedStore(saying: #"{"status":21004}"#)
        try await PurchaseRouteTests.serving(store) { served, client in
            let order = try await order(client, served)
            let proof = try order.proof(of: Sample.receipt())
            func ask() async throws -> (wait: Int, text: String) {
                let answer = try await send(Sample.receipt(), for: order.id, proof: proof, client)
                let body = try AnswerBody(answer)
                #expect(
                    answer.status == .accepted && body.text("result") == "pending" && body.text("advice") == "retry")
                return (try #require(body.integer("retry_after_s")), String(buffer: answer.body))
            }
            var answer = try await ask()
            #expect((280...320).contains(answer.wait), "as long as the receipt waits by itself")
            #expect(!answer.text.contains("21004") && !answer.text.contains("secret"), "\(answer.text)")
            let service = try AnswerBody(
                try await client.send(
                    .post, Serving.receipts, secret: served.secret, body: Sample.upload(Sample.receipt())))
            #expect((280...320).contains(service.integer("retry_after_s") ?? 0))
            #expect(service.text("reason")?.contains("21004") == true, "the operator's service hears why")
            try await served.run("UPDATE ledger.receipt SET received_at = now() - interval '2 days'")
            #expect(try await ask().wait == 3_600, "an hour at most")

            try await served.run(
                """
                INSERT INTO ledger.secret_trial AS t (app_id, environment, paused_since, try_at)
                SELECT app_id, 'Production', now(), now() + interval '40 s' FROM ledger.app WHERE bundle_id = 'com.example.app'
                ON CONFLICT (app_id, environment) DO UPDATE SET paused_since = now(), try_at = EXCLUDED.try_at
                """)
            let calls = store.callCount
            answer = try await ask()
            #expect((30...40).contains(answer.wait) && store.callCount == calls, "until the next trial")
            #expect(!answer.text.contains("21004") && !answer.text.contains("secret"), "\(answer.text)")
        }
    }

    @Test("An upload that names an unknown order or another customer's is refused and stores nothing")
    func foreignOrders() async throws {
        let store = ScriptedStore(saying: PurchaseRouteTests.bought([("p", "coins", "")]))
        try await PurchaseRouteTests.serving(store) { served, client in
            let order = try await order(client, served, by: "bob")
            for id in [order.id, UUID().uuidString, "nothing"] {
                let answer = try await client.send(
                    .post, Serving.receipts, secret: served.secret,
                    body: #"{"customer":"kim","receipt":"\#(Sample.receipt())","order":"\#(id)"}"#)
                #expect(answer.status == .notFound, "\(id)")
            }
            #expect(try await served.ledger.customers.receipts().isEmpty)
        }
    }
}
