import AppStore
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("An explanation of two answers says what their settlements do")
struct ExplainedSettlementTests {
    /// Our answers that have an earlier one, both vouched for.
    private static let pairs: [(name: String, answers: [Evidence], bodies: [[UInt8]])] = {
        let answers = (try? OwnAnswers.all()) ?? []
        return answers.compactMap { answer in
            guard let before = answer.before else { return nil }
            let bodies = [before, answer.body]
            let read = bodies.compactMap { body in
                Finding(
                    in: AppStoreAnswer(body: body, from: .production), for: VerdictGoldenTests.bundleID,
                    clock: VerdictText.now
                ).evidence
            }
            return read.count == 2 ? (answer.name, read, bodies) : nil
        }
    }()

    /// Those in which periods move. Their settlements are about the same subscriptions.
    private static let moves = [
        "row-03-line-item-moves.json", "row-03-line-item-moves-everywhere.json", "row-03-line-item-twice.json",
        "row-03-replaced-line-item-moves.json",
    ]

    private func settled(_ test: TestLedger, _ answers: [Evidence]) async throws -> (states: [String], events: [String])
    {
        var change = AppChange()
        (change.leeway, change.sandboxLeeway) = (.zero, .zero)
        try await test.ledger.apps.change(test.app.bundleID, change)
        let receipt = try await test.upload("a")
        var seen: Int64 = 0
        for answer in answers {
            seen =
                try await test.database.query(.test("SELECT COALESCE(max(event_id), 0) AS n FROM ledger.event"))
                .first?.int8("n") ?? 0
            try await test.check(receipt, .verified(answer))
        }
        let last = try #require(answers.last)
        let states = try await test.database.query(
            .test(
                """
                SELECT concat_ws(' ', s.original_transaction_id, p.state, p.reason, p.entitled, p.product_id,
                                 s.periods) AS line
                FROM ledger.subscription s JOIN ledger.subscription_span p USING (subscription_id)
                WHERE upper_inf(p.known) AND p.valid @> $1::timestamptz
                """),
            [.instant(last.asOf)]
        ).map { try $0.text("line") }
        let events = try await test.database.query(
            .test(
                """
                SELECT concat_ws(' ', e.kind, COALESCE(s.original_transaction_id, p.original_transaction_id), e.product_id,
                                 (extract(epoch FROM e.occurred_at) * 1000)::bigint) AS line
                FROM ledger.event e LEFT JOIN ledger.subscription s USING (subscription_id)
                LEFT JOIN ledger.purchase p USING (purchase_id)
                WHERE e.event_id > $1::bigint AND e.kind::text !~ '^(ownership|entitlements)'
                """),
            [.int8(seen)]
        ).map { try $0.text("line") }
        return (states.sorted(), events.sorted())
    }

    private func explained(_ bodies: [[UInt8]]) throws -> (states: [String], events: [String]) {
        let explanation = AnswerExplanation(
            body: bodies[1], bundleID: VerdictGoldenTests.bundleID, at: nil, previous: bodies[0], now: VerdictText.now)
        let states = explanation.subscriptions.map { subscription in
            let (facts, verdict) = (subscription.state.facts, subscription.verdict)
            let words = [
                facts.originalTransactionID.text, verdict.state.rawValue, verdict.reason?.rawValue,
                verdict.entitled ? "t" : "f", verdict.productID.text, "\(subscription.state.periods)",
            ]
            return words.compactMap(\.self).joined(separator: " ")
        }
        let events = (explanation.events ?? []).map { said in
            [
                said.event.kind.rawValue, said.id.text, said.event.productID.text,
                "\(said.event.occurredAt.milliseconds)",
            ].joined(separator: " ")
        }
        return (states.sorted(), events.sorted())
    }

    private func expectSameWords(_ answers: [Evidence], _ bodies: [[UInt8]], isMove: Bool) async throws {
        try await withLedger { test in
            let (settled, explained) = (try await settled(test, answers), try explained(bodies))
            // An explanation is of what the last answer is about.
            #expect(Set(explained.states).isSubset(of: settled.states))
            #expect(explained.states.isEmpty == answers[1].subscriptions.isEmpty)
            if isMove { #expect(explained.states == settled.states) }
            #expect(explained.events == settled.events)
        }
    }

    @Test("State, reason, access and events are those of the settlements", arguments: pairs.map(\.name))
    func sameWords(_ name: String) async throws {
        let pair = try #require(Self.pairs.first { $0.name == name })
        try await expectSameWords(pair.answers, pair.bodies, isMove: Self.moves.contains(name))
    }

    @Test("They are also where a period moved before the older answer is read", arguments: moves)
    func olderLast(_ name: String) async throws {
        let pair = try #require(Self.pairs.first { $0.name == name })
        try await expectSameWords(pair.answers.reversed(), pair.bodies.reversed(), isMove: true)
    }
}
