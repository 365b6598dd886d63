import AppStore
import Crypto
import Ledger
import Subscriptions
import Synchronization
import TestSupport
import Testing

@testable import Tracking

/// Odd answers to the question for a history of notifications, and the place where it goes on.
@Suite("A history of notifications moves only past what is stored")
struct CatchUpAnswerTests {
    /// Answers in turn, and what was asked for each.
    private final class Script: Sendable {
        let state: Mutex<(answers: [NotificationHistoryAnswer], asked: [String])>

        init(_ answers: [NotificationHistoryAnswer]) { state = Mutex((answers, [])) }

        var client: NotificationHistoryClient {
            NotificationHistoryClient { request in
                self.state.withLock { state in
                    let kind = request.onlyFailures ? "failures" : "everything"
                    state.asked.append("\(request.environment) \(kind) \(request.page ?? "-")")
                    return state.answers.isEmpty ? .page([], next: nil) : state.answers.removeFirst()
                }
            }
        }

        var asked: [String] { state.withLock(\.asked) }
    }

    /// An app with a server key whose history answers by the script, and a worker.
    private func with(
        _ script: Script, _ body: @escaping @Sendable (SignedApp, Tracker, WorkerID) async throws -> Void
    ) async throws {
        try await SignedApp.with { app in
            let key = P256.Signing.PrivateKey().pemRepresentation
            try await app.served.ledger.apps.storeServerKey(
                try ConnectKey(pem: key, id: "K1", issuer: "57246542-96fe-1a63-e053-0824d011072a"), of: ServedLedger.app
            )
            let tracker = Tracker(
                ledger: app.served.ledger, appStore: .answering(nil), options: TrackerOptions(), logger: .quiet,
                signedTexts: app.tracker.signedTexts, notificationHistory: script.client)
            let worker = try await tracker.startWorker()
            _ = try await tracker.catchUp(as: worker)
            // Only one of the four histories shall be due.
            try await app.served.run(
                "UPDATE ledger.catch_up SET due_at = CASE WHEN environment = 'Production' AND kind = 'everything' THEN now() ELSE 'infinity' END"
            )
            try await body(app, tracker, worker)
        }
    }

    private static let place = """
        SELECT concat_ws(' ', page, reads_until IS NOT NULL, leased_by IS NOT NULL, reason) AS line
        FROM ledger.catch_up WHERE environment = 'Production' AND kind = 'everything'
        """

    @Test("Pages are stored one by one, old ones too, and each notification once")
    func pages() async throws {
        let script = Script([])
        try await with(script) { app, tracker, worker in
            // Signed a month ago: as a push it would not be believed.
            let old = try app.notification(
                "SUBSCRIBED", "INITIAL_BUY", transaction: app.transaction("1", from: 0, days: 60, signedOn: 0.1),
                renewal: app.renewal(ends: 60, signedOn: 0.1), signedOn: 0.1)
            let new = try app.notification("TEST", status: nil, transaction: nil, signedOn: 29)
            script.state.withLock {
                $0.answers = [
                    .page([Array(old.utf8)], next: "b"), .page([old, new].map { Array($0.utf8) }, next: nil),
                ]
            }
            #expect(try await tracker.catchUp(as: worker))
            #expect(try await tracker.catchUp(as: worker) == false, "an hour later")
            #expect(script.asked == ["production everything -", "production everything b"])
            let kept = try await app.rows(
                "SELECT concat_ws(' ', kind, effect, source) AS line FROM ledger.notification ORDER BY notification_id")
            #expect(kept == ["SUBSCRIBED received history", "TEST no_facts history"])
            #expect(try await app.rows(Self.place) == ["f f"])
        }
    }

    @Test("A text that cannot be verified stops the history there; the others of its page are stored")
    func unverified() async throws {
        let script = Script([])
        try await with(script) { app, tracker, worker in
            let good = try app.notification("TEST", status: nil, transaction: nil, signedOn: 29)
            var forged = Array(try app.notification("TEST", status: nil, transaction: nil, signedOn: 29).utf8)
            forged[forged.count - 5] ^= 1
            let page = [forged, Array(good.utf8)]
            script.state.withLock { $0.answers = [.page([], next: "b"), .page(page, next: "c")] }
            #expect(try await tracker.catchUp(as: worker))
            let place = try await app.rows(Self.place)
            #expect(place.first?.hasPrefix("b t f A notification in Apple's history cannot be verified.") == true)
            #expect(try await app.effects() == ["no_facts"])
        }
    }

    @Test("A place that Apple forgot is read again from the start of the stretch, and a start that is too old moves on")
    func lost() async throws {
        let script = Script([])
        try await with(script) { app, tracker, worker in
            try await app.served.run("UPDATE ledger.catch_up SET reads_from = now() - interval '100 days'")
            script.state.withLock { $0.answers = [.page([], next: "b"), .placeLost] }
            #expect(try await tracker.catchUp(as: worker))
            let place = try await app.rows(Self.place)
            #expect(place.first?.hasPrefix("f f Apple does not know the place") == true, "\(place)")
            try await app.served.run(
                "UPDATE ledger.catch_up SET due_at = now() WHERE environment = 'Production' AND kind = 'everything'")
            script.state.withLock { $0.answers = [.startTooOld] }
            #expect(try await tracker.catchUp(as: worker))
            #expect(try await app.rows(Self.place) == ["f f"])
            let days = try await app.rows(
                "SELECT round(extract(epoch FROM now() - reads_from) / 86400)::text AS line FROM ledger.catch_up WHERE environment = 'Production' AND kind = 'everything'"
            )
            #expect(days == ["90"])
            #expect(
                script.asked == Array(repeating: "production everything -", count: 1) + [
                    "production everything b", "production everything -",
                ])
        }
    }

    @Test("Apple's request for fewer calls stops this kind of call, and the place stays")
    func tooMany() async throws {
        let script = Script([])
        try await with(script) { app, tracker, worker in
            script.state.withLock {
                $0.answers = [.page([], next: "b"), .failed("Apple asks for fewer requests.", retryAfterSeconds: 600)]
            }
            #expect(try await tracker.catchUp(as: worker))
            #expect(try await app.rows(Self.place) == ["b t f Apple asks for fewer requests."])
            let paused = try await app.rows(
                "SELECT endpoint AS line FROM ledger.call_budget WHERE paused_until > now() + interval '9 minutes'")
            #expect(paused == ["notifications"])
        }
    }

    @Test("One worker at a time reads a history, and the next one goes on where a killed one was")
    func lease() async throws {
        try await with(Script([])) { app, tracker, worker in
            let intake = app.served.ledger.intake
            let other = try await tracker.startWorker()
            let turn = try #require(try await intake.takeCatchUp(for: worker, leaseSeconds: 60))
            #expect(try await intake.move(turn, to: "b", leaseSeconds: 60))
            #expect(try await intake.takeCatchUp(for: other, leaseSeconds: 60) == nil)
            try await intake.hastenCatchUps()
            let hastened = try await intake.takeCatchUp(for: other, leaseSeconds: 60)
            #expect(hastened?.environment == .sandbox, "a start does not take it away")
            try await app.served.run("UPDATE ledger.catch_up SET due_at = now() WHERE page IS NOT NULL")
            let taken = try #require(try await intake.takeCatchUp(for: other, leaseSeconds: 60))
            #expect(taken.page == "b" && taken.from == turn.from && taken.until == turn.until)
            #expect(try await intake.move(turn, to: "c", leaseSeconds: 60) == false, "the first one lost it")
        }
    }

    @Test("A first round begins when the app was added, at most Apple's 180 and 30 days ago, and goes by days")
    func first() async throws {
        let script = Script([])
        try await with(script) { app, tracker, worker in
            try await app.served.run(
                """
                DELETE FROM ledger.catch_up; UPDATE ledger.app SET created_at = now() - interval '40 days'
                """)
            let intake = app.served.ledger.intake
            #expect(try await intake.takeCatchUp(for: worker, leaseSeconds: 60) == nil, "they are added first")
            var stretches: [String: Int] = [:]
            while try await tracker.catchUp(as: worker) {}
            for asked in script.asked { stretches[asked, default: 0] += 1 }
            #expect(
                stretches == [
                    "production everything -": 40, "production failures -": 40, "sandbox everything -": 30,
                    "sandbox failures -": 30,
                ])
            let complete = try await app.rows(
                "SELECT DISTINCT (complete_until > now() - interval '1 minute')::text AS line FROM ledger.catch_up")
            #expect(complete == ["true"])
        }
    }
}
