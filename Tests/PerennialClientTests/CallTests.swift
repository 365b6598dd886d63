import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@testable import PerennialClient

@Suite("A call says what to do when it fails, and reads what a newer server says")
struct CallTests {
    let store = ScriptedServer()

    @Test("Each failure has its disposition")
    func dispositions() async throws {
        typealias Answer = ScriptedServer.Answer
        let table: [(Answer?, PerennialError.Disposition)] = [
            (nil, .retry(afterSeconds: nil)),
            (.problem(429, "too-many", retryAfter: "7"), .retry(afterSeconds: 7)),
            (.problem(503, "unavailable", retryAfter: "30"), .retry(afterSeconds: 30)),
            (.problem(503, "unavailable", retryAfter: "soon"), .retry(afterSeconds: nil)),
            (.problem(500, "failed"), .retry(afterSeconds: nil)),
            (.problem(408, "timed-out"), .retry(afterSeconds: nil)),
            (Answer(status: 502, body: "<html>"), .retry(afterSeconds: nil)),
            (.problem(400, "invalid"), .reject), (.problem(409, "conflict"), .reject),
            (.problem(413, "too-large"), .reject), (.problem(422, "not-a-receipt"), .reject),
            (.problem(403, "proof-refused"), .reject), (.problem(404, "not-found"), .reject),
            (.problem(418, "of-a-newer-server"), .reject),
            (.problem(401, "unauthenticated"), .alarm), (.problem(403, "forbidden"), .alarm),
            (.problem(404, "unknown-app"), .alarm), (.problem(405, "method-not-allowed"), .alarm),
            // What a proxy or another server says is no refusal of Perennial's.
            (Answer(status: 404, body: "not here"), .alarm), (Answer(status: 413, body: "<html>"), .alarm),
            (Answer(status: 403, body: #"{"type":"https://example.com/no"}"#), .alarm), (Answer(status: 301), .alarm),
            (Answer(status: 200, body: "<html>"), .alarm), (Answer(status: 200, body: "{}"), .alarm),
        ]
        for (answer, disposition) in table {
            store.say(answer)
            let error = await #expect(throws: PerennialError.self) { try await store.server().order("1") }
            #expect(error?.disposition == disposition, "\(String(describing: answer))")
            #expect(error?.description.contains("secret") == false)
        }
    }

    @Test("A cancelled call is cancelled, not unreachable")
    func cancelled() async {
        let server = PerennialServer(
            at: URL(filePath: "/"), app: "a",
            transport: Transport { _ in
                try await Task.sleep(for: .seconds(60))
                throw URLError(.timedOut)
            })
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await #expect(throws: CancellationError.self) { try await server.order("1") } }
            group.cancelAll()
        }
    }

    @Test("Requests are addressed below the base, with ids encoded, and devices send no key")
    func requests() async throws {
        store.say(.problem(404, "not-found"))
        _ = try? await store.server().orders(of: "kim/ö?", in: .paid, after: "x", limit: 5)
        _ = try? await store.server(key: nil).report(.failed, code: "2", of: try PlacedOrder.sample())
        _ = try? await store.server().send(Upload(receipt: Data([1]), of: try PlacedOrder.sample()))
        _ = try? await store.server().send(Upload(receipt: "AQ==", customer: "kim", transactionID: "7"))
        _ = try? await store.server().place(NewOrder(customer: "kim", productID: "coins"))
        _ = try? await store.server().send(Upload(.signedTransaction("a.b.c"), customer: "kim"))
        _ = try? await store.server().send(Upload(.transactionID("7"), customer: "kim", storefront: "USA"))
        let base = "https://perennial.example.com/api/v1"
        #expect(
            store.requests.map { $0.url?.absoluteString } == [
                "\(base)/apps/com.example.app/customers/kim%2F%C3%B6%3F/orders?limit=5&state=paid&after=x",
                "\(base)/orders/0c1d/state", "\(base)/orders/0c1d/receipt", "\(base)/apps/com.example.app/receipts",
                "\(base)/apps/com.example.app/orders", "\(base)/apps/com.example.app/receipts",
                "\(base)/apps/com.example.app/receipts",
            ])
        let keys = store.requests.map { $0.value(forHTTPHeaderField: "Authorization") }
        #expect(keys == ["Bearer secret", nil, nil] + Array(repeating: "Bearer secret", count: 4))
        let bodies = store.requests.dropFirst().map { String(decoding: $0.httpBody ?? Data(), as: UTF8.self) }
        #expect(bodies[0].hasPrefix(#"{"code":"2","proof":""#) && bodies[0].hasSuffix(#"","state":"failed"}"#))
        #expect(bodies[1].hasPrefix(#"{"proof":""#) && bodies[1].hasSuffix(#"","receipt":"AQ=="}"#))
        #expect(bodies[2] == #"{"customer":"kim","for_transaction_id":"7","purpose":"launch","receipt":"AQ=="}"#)
        #expect(bodies[3] == #"{"customer":"kim","product_id":"coins","quantity":1}"#)
        #expect(bodies[4] == #"{"customer":"kim","purpose":"launch","signed_transaction":"a.b.c"}"#)
        #expect(bodies[5] == #"{"customer":"kim","purpose":"launch","storefront":"USA","transaction_id":"7"}"#)
        #expect(store.requests[4].value(forHTTPHeaderField: "Idempotency-Key").flatMap(UUID.init) != nil)
        await #expect(throws: PerennialError.self) { try await store.server().entitlements(of: "..") }
        #expect(store.requests.count == 7)
    }

    @Test("An order to be placed keeps its Idempotency-Key when it is stored")
    func idempotency() async throws {
        let new = NewOrder(customer: "kim", productID: "coins", price: Price("0.99", "USD"))
        let kept = try JSONDecoder().decode(NewOrder.self, from: try JSONEncoder().encode(new))
        #expect(kept == new && kept.idempotencyKey == new.idempotencyKey)
        #expect(NewOrder(customer: "kim", productID: "coins").idempotencyKey != new.idempotencyKey)
    }

    @Test("Words and fields of a newer server are kept or passed over")
    func newerServer() async throws {
        store.say(
            ScriptedServer.Answer(
                body: """
                    {"order_id":"1","customer":"kim","product_id":"coins","quantity":1,"environment":"Xcode",
                     "state":"gifted","cause":"magic","created_at":"2026-11-24T12:00:00Z","new":[1],
                     "expires_at":"2026-11-25T12:00:00.250Z","paid_at":null,"transaction_id":null,"delivery_ids":[]}
                    """))
        let order = try await store.server().order("1")
        #expect(order.state == OrderState(rawValue: "gifted") && order.environment == "Xcode")
        #expect(order.expiresAt.timeIntervalSince(order.createdAt) == 86_400.25)
        store.say(.upload("postponed", advice: "ask_parent", finish: ["1", "2"]))
        let answer = try await store.server().send(Upload(receipt: "AQ==", customer: "kim"))
        #expect(answer.result.rawValue == "postponed" && answer.advice?.rawValue == "ask_parent")
        #expect(answer.mayFinish == ["1", "2"] && answer.mayFinishRestored == ["o"] && answer.entitlements.isEmpty)
    }

    @Test("A receipt that Apple refuses is an answer with its reason")
    func rejected() async throws {
        store.say(
            .problem(
                422, "receipt-rejected",
                more: #""result":"failed","advice":"refresh_receipt","may_finish":[],"may_finish_restored":[],"#))
        let answer = try await store.server().send(Upload(receipt: "AQ==", customer: "kim"))
        #expect(answer.result == .failed && answer.advice == .refreshReceipt && answer.reason == "It says why.")
    }
}
