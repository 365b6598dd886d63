import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("The Server API admits only good tokens, and only so many calls") struct ServerTokenTests {
    private let hand = ManualClock()
    private let client: ServerClient
    private let path: String

    init() throws {
        let store = hand.emptyStore()
        client = try ServerClient(store, hand)
        path = "v1/subscriptions/" + store.createCustomer(CustomerScript()).originalTransactionID
    }

    @Test("A good token is admitted, and without one the answer is empty")
    func good() throws {
        #expect(try client.call("GET", path).code == 200)
        for header in [nil, "", "Bearer", "Basic abc", "Bearer a.b.c"] {
            let answer = try client.call("GET", path, authorization: header)
            #expect(answer.code == 401 && answer.body.isEmpty)
        }
    }

    @Test(
        "A token is refused for each claim that is wrong",
        arguments: [
            ("alg", "HS256"), ("kid", "S2"), ("typ", "JOSE"), ("iss", "another"), ("aud", "apple"),
            ("bid", "com.example.other"), ("iat", 60), ("exp", 0), ("exp", 3541),
        ] as [(String, any Sendable)])
    func bad(name: String, value: any Sendable) throws {
        let now = ManualClock.start / 1000
        let token = try client.token { header, claims in
            let value: Any = (value as? Int).map { now + Int64($0) } ?? value
            if header[name] != nil { header[name] = value } else { claims[name] = value }
        }
        let answer = try client.call("GET", path, authorization: "Bearer " + token)
        #expect(answer.code == 401 && answer.body.isEmpty)
    }

    @Test("A token lives an hour at most, until its end")
    func ages() throws {
        let longest = try client.token { $1["exp"] = ManualClock.start / 1000 + 3540 }
        #expect(try client.call("GET", path, authorization: "Bearer " + longest).code == 200)
        hand.move(seconds: 3540)
        #expect(try client.call("GET", path, authorization: "Bearer " + longest).code == 401)
    }

    @Test("A path that Apple does not have is not found")
    func paths() throws {
        for (method, path) in [("POST", path), ("GET", "v3/history/1"), ("GET", "v1/subscriptions")] {
            #expect(try client.call(method, path).code == 404)
        }
    }

    @Test("A rate holds for its endpoint and second, and says when to come again in milliseconds")
    func rates() throws {
        let set = try client.store.control(
            "POST", "/simulator/rates", #"{"endpoint":"subscriptions","per_second":2}"#)
        #expect(set.code == 200)
        hand.move(seconds: 0.25)
        let codes = try (0..<4).map { _ in try client.call("GET", path).code }
        #expect(codes == [200, 200, 429, 429])
        let refused = try client.call("GET", path)
        #expect(refused.errorCode == 4_290_000)
        #expect(refused.headers["Retry-After"] == String(ManualClock.start + 1000))
        #expect(try client.call("GET", path.replacing("v1/subscriptions", with: "v2/history")).code == 200)
        hand.move(seconds: 0.75)
        #expect(try client.call("GET", path).code == 200)
        #expect(try client.store.control("DELETE", "/simulator/rates").code == 200)
        #expect(try (0..<5).allSatisfy { _ in try client.call("GET", path).code == 200 })
    }

    @Test("The header arrives over HTTP")
    func overHTTP() async throws {
        var options = SimulatorOptions(seed: 7)
        options.port = 0
        let client = try ServerClient(Simulator(options, clock: hand.clock), hand)
        let customer = try #require(client.store.receipts(count: 1).first)
        let token = try client.token()
        try await client.store.serving { port in
            let head = "GET /inApps/v1/subscriptions/\(customer.originalTransactionID) HTTP/1.1\r\nHost: store\r\n"
            let answer = try await RawConnection.exchange(
                head + "Connection: close\r\nauthorization: Bearer \(token)\r\n\r\n", port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains(#""bundleId":"com.example.tracker""#))
        }
    }
}
