import AppStore
import Foundation
import Hummingbird
import HummingbirdTesting
import Ledger
import Testing

@testable import Tracking

/// A receipt that is sent again right after it was checked.
@Suite("The same upload again")
struct KnownReceiptTests {
    /// An app's server, with an App Store that counts its calls.
    private struct World: Sendable {
        let client: any TestClientProtocol
        let served: ServedLedger
        let calls: CallCount

        /// Sends kim's receipt, or whatever else is given.
        func send(_ body: String = Sample.upload(Sample.receipt())) async throws -> TestResponse {
            let answer = try await client.send(.post, Serving.receipts, secret: served.secret, body: body)
            #expect(answer.status == .ok)
            return answer
        }
    }

    private func with(
        _ answer: String = Sample.verified(), freshSeconds: Double = 60,
        _ body: @escaping @Sendable (World) async throws -> Void
    ) async throws {
        try await ServedLedger.with { served in
            let calls = CallCount()
            let store = Serving.answering(answer)
            let counting = AppStoreClient { request in
                await calls.add()
                return await store.verify(request)
            }
            var limits = ServerLimits()
            limits.submission.freshSeconds = freshSeconds
            let server = Server(
                tracker: Serving.tracker(served.ledger, appStore: counting), logger: Serving.quiet, limits: limits,
                keys: KeyRing { try await served.ledger.key(withSecret: $0) })
            try await server.application.test(.router) { client in
                try await body(World(client: client, served: served, calls: calls))
            }
        }
    }

    @Test func isAnsweredTheSameWithoutAskingApple() async throws {
        try await with { world in
            let first = String(buffer: try await world.send().body)
            let second = String(buffer: try await world.send().body)
            #expect(await world.calls.count == 1)
            #expect(first.contains(#""answer":"assigned""#))
            #expect(second == first.replacing(#""answer":"assigned""#, with: #""answer":"held""#))
        }
    }

    /// What makes Apple be asked again, as SQL or as another upload.
    @Test(arguments: [
        "UPDATE ledger.receipt SET verified_at = now() - interval '61 s', asked_at = now() - interval '61 s'",
        "UPDATE ledger.receipt SET outcome = 'indeterminate'",
        "UPDATE ledger.receipt SET environment = 'Sandbox'",
        "UPDATE ledger.receipt SET rejections = 1, rejected_since = now()",
        "UPDATE ledger.poll_schedule SET due_at = now() + interval '5 s'",
        "UPDATE ledger.poll_schedule SET want_at = now() + interval '90 s'",
        "UPDATE ledger.upload SET settled = false",
        "UPDATE ledger.subscription_span SET state = 'billing_retry', reason = NULL, entitled = false",
        """
        INSERT INTO ledger.customer (app_id, name) SELECT app_id, 'lee' FROM ledger.app WHERE bundle_id = 'com.example.app';
        UPDATE ledger.ownership SET customer_id = (SELECT customer_id FROM ledger.customer WHERE name = 'lee')
        """,
    ])
    func appleIsAskedWhenMoreMayBeKnown(change: String) async throws {
        try await with { world in
            _ = try await world.send()
            try await world.served.run(change)
            _ = try await world.send()
            #expect(await world.calls.count == 2)
        }
    }

    @Test func appleIsAskedForAnotherCustomerAndWhatIsNew() async throws {
        try await with { world in
            _ = try await world.send()
            _ = try await world.send(Sample.upload(Sample.receipt(), customer: "lee"))
            #expect(await world.calls.count == 2)
            let priced = #"{"customer":"lee","receipt":"\#(Sample.receipt())","price":"9.99","currency":"EUR"}"#
            _ = try await world.send(priced)
            #expect(await world.calls.count == 3)
            _ = try await world.send(priced)
            #expect(await world.calls.count == 3, "the price is known by now")
        }
    }

    @Test func appleIsAskedWhenThePeriodEndsWithinTheMinute() async throws {
        let now = Int64(Date.now.timeIntervalSince1970) * 1000
        let ending = Sample.verified().replacing(
            /"expires_date_ms":"[0-9]+"/, with: #""expires_date_ms":"\#(now + 50_000)""#)
        try await with(ending) { world in
            _ = try await world.send()
            _ = try await world.send()
            #expect(await world.calls.count == 2)
        }
    }

    @Test func appleIsAskedEachTimeWhereThatIsWanted() async throws {
        try await with(freshSeconds: 0) { world in
            _ = try await world.send()
            _ = try await world.send()
            #expect(await world.calls.count == 2)
        }
    }
}
