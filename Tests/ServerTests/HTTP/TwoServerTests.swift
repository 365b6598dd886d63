import Hummingbird
import HummingbirdTesting
import Postgres
import TestSupport
import Testing
import Tracking

@testable import Server

/// The same receipt at two servers on one database: the first server asks Apple for both.
@Suite("Two servers share one check of the same receipt") struct TwoServerTests {
    /// What an upload was answered: the status, and what became of the claim to each subscription.
    private struct Answer: Sendable, Hashable {
        let status: Int
        let ownership: [String]
    }

    /// An App Store that answers after a while.
    private func slowStore(saying body: String = Sample.verified()) -> ScriptedStore {
        ScriptedStore(saying: body, after: .milliseconds(400))
    }

    /// Sends the receipt of each customer to each of two servers at once.
    private func sendToBoth(
        _ customers: [String], appStore: ScriptedStore, served: ServedLedger
    ) async throws -> [Answer] {
        try await withThrowingTaskGroup(of: [Answer].self) { servers in
            for _ in 1...2 {
                servers.addTask {
                    // Each has its own tracker, and so its own number as a worker, as another machine's has.
                    try await Serving.with(Tracker.quiet(served.ledger, appStore: appStore.client)) { client in
                        try await withThrowingTaskGroup(of: Answer.self) { uploads in
                            for customer in customers {
                                uploads.addTask { try await send(by: customer, to: client, secret: served.secret) }
                            }
                            return try await uploads.reduce(into: []) { $0.append($1) }
                        }
                    }
                }
            }
            return try await servers.reduce(into: []) { $0 += $1 }
        }
    }

    private func send(
        by customer: String, to client: any TestClientProtocol, secret: String
    ) async throws -> Answer {
        let answer = try await client.send(
            .post, Serving.receipts, secret: secret, body: Sample.upload(Sample.receipt(), customer: customer))
        guard answer.status == .ok else { return Answer(status: answer.status.code, ownership: []) }
        let body = try AnswerBody(answer)
        let subscriptions = try #require(body.list("subscriptions"))
        #expect(subscriptions.map { $0["product_id"] as? String } == ["monthly"])
        #expect(subscriptions.map { $0["state"] as? String } == ["active"])
        return Answer(
            status: 200,
            ownership: subscriptions.map { ($0["ownership"] as? [String: Any])?["answer"] as? String ?? "nothing" })
    }

    @Test("Two servers make one call for both")
    func oneCallForBoth() async throws {
        try await ServedLedger.with { served in
            let store = slowStore()
            let answers = try await sendToBoth(["kim", "kim", "kim"], appStore: store, served: served)
            #expect(answers.count == 6)
            #expect(
                Set(answers) == [
                    Answer(status: 200, ownership: ["assigned"]), Answer(status: 200, ownership: ["held"]),
                ])
            #expect(store.callCount == 1)
            #expect(try await served.ledger.customers.receipts().count == 1)
            let leased = try await served.database.query(
                .init(name: "leased", sql: "SELECT 1 AS one FROM ledger.poll_schedule WHERE leased_by IS NOT NULL"))
            #expect(leased.isEmpty, "a lease is left")
        }
    }

    @Test("Each answer says what became of the customer's claim")
    func eachCustomerIsToldWhatBecameOfTheirClaim() async throws {
        try await ServedLedger.with { served in
            let store = slowStore()
            let answers = try await sendToBoth(["kim", "lee"], appStore: store, served: served)
            let reported = answers.map(\.ownership)
            #expect(answers.allSatisfy { $0.status == 200 })
            #expect(reported.count { $0 == ["refused"] } == 2, "\(reported)")
            #expect(reported.count { $0 == ["assigned"] || $0 == ["held"] } == 2, "\(reported)")
            #expect(store.callCount == 1)
        }
    }

    @Test(
        "Both servers answer that Apple does not vouch for the receipt, after one call",
        arguments: [(#"{"status":21003}"#, 422), (#"{"status":21005}"#, 202)])
    func whatAppleDoesNotVouchFor(body: String, status: Int) async throws {
        try await ServedLedger.with { served in
            let store = slowStore(saying: body)
            let answers = try await sendToBoth(["kim"], appStore: store, served: served)
            #expect(answers.map(\.status) == [status, status])
            #expect(store.callCount == 1)
        }
    }
}
