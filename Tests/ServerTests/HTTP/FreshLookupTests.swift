import Hummingbird
import HummingbirdTesting
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("A caller whose write was answered finds it at every server")
struct FreshLookupTests {
    private static let rounds = 20
    private static let entitlements = "/v1/apps/com.example.app/customers/kim/entitlements"
    private static let grants = "/v1/apps/com.example.app/customers/kim/grants"

    /// Whether a server says that an entitlement is granted; by the batch too.
    private func says(
        _ client: any TestClientProtocol, _ served: ServedLedger, that right: String
    ) async throws -> [Bool] {
        let one = try AnswerBody(try await client.send(.get, Self.entitlements, secret: served.secret))
        let all = try AnswerBody(
            try await client.send(
                .post, "/v1/apps/com.example.app/entitlements:batch", secret: served.secret,
                body: #"{"customers":["kim"]}"#))
        return [one.list("entitlements"), all.list("customers")?.first?["entitlements"] as? [[String: Any]]].map {
            $0?.contains { $0["entitlement"] as? String == right && $0["granted"] as? Bool == true } ?? false
        }
    }

    @Test("Grants and revocations at one server appear at the other at once")
    func twoServers() async throws {
        try await ServedLedger.with { served in
            try await Serving.with(Tracker.quiet(served.ledger, appStore: .answering(nil))) { one in
                try await Serving.with(Tracker.quiet(served.ledger, appStore: .answering(nil))) { other in
                    for round in 0..<Self.rounds {
                        let right = "right\(round)"
                        for client in [one, other] {
                            #expect(try await says(client, served, that: right) == [false, false])
                        }
                        let body = #"{"entitlement":"\#(right)","actor":"kim","reason":"x","force":true}"#
                        _ = try await one.send(.post, Self.grants, secret: served.secret, body: body)
                        for client in [one, other] {
                            #expect(try await says(client, served, that: right) == [true, true])
                        }
                        let query = "?entitlement=\(right)&actor=kim&reason=x"
                        _ = try await other.send(.delete, Self.grants + query, secret: served.secret)
                        for client in [one, other] {
                            #expect(try await says(client, served, that: right) == [false, false])
                        }
                    }
                }
            }
        }
    }
}
