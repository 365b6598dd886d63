import AppStore
import Foundation
import Postgres
import Subscriptions
import Synchronization
import TestSupport
import Testing

@testable import Tracking

@Suite("A receipt that Apple answers with 21004 stops nothing unless Apple refuses the secret itself")
struct SecretTrialTests {
    /// An App Store that knows one app's secret and receipts, by environment; every other receipt is another app's.
    final class Store: Sendable {
        struct State {
            var secret = "shared secret"
            var own: [String: StoreEnvironment] = [:]
            /// Those of the own ones that hold a one-time purchase, and no subscription.
            var bought: Set<String> = []
            var answers = true
            /// The receipts of the calls, in order.
            var asked: [String] = []
        }

        let state = Mutex(State())

        /// Apple vouches for one consumable.
        private static func bought(_ id: String) -> String {
            let now = Int64(Date.now.timeIntervalSince1970) * 1000
            return """
                {"status":0,"environment":"Production","receipt":{"bundle_id":"com.example.app","request_date_ms":"\(now)",
                 "receipt_creation_date_ms":"\(now - 60_000)","in_app":[{"product_id":"coins","quantity":"1",
                 "transaction_id":"\(id)","original_transaction_id":"\(id)","purchase_date_ms":"\(now - 90_000)",
                 "original_purchase_date_ms":"\(now - 90_000)"}]}}
                """
        }

        func change(_ change: @Sendable (inout State) -> Void) { state.withLock { change(&$0) } }

        /// How often it was asked since the last look.
        var calls: Int {
            state.withLock { state -> Int in
                defer { state.asked = [] }
                return state.asked.count
            }
        }

        var client: AppStoreClient {
            AppStoreClient { [self] request in
                state.withLock { state in
                    state.asked.append(request.receipt)
                    guard state.answers else { return .saying(nil) }
                    let environment = state.own[request.receipt]
                    let isOwn = environment != nil && [request.secret, request.previousSecret].contains(state.secret)
                    let number = Data(base64Encoded: request.receipt)?.last ?? 0
                    let body =
                        isOwn && state.bought.contains(request.receipt)
                        ? Self.bought("\(number)")
                        : isOwn
                            ? Sample.verified(subscription: "\(number)")
                                .replacing("Production", with: environment?.rawValue ?? "")
                                .replacing(
                                    #""latest_receipt_info""#,
                                    with: #""latest_receipt":"\#(request.receipt)","latest_receipt_info""#)
                            : #"{"status":21004}"#
                    let bytes = Array(body.utf8)
                    return AppStoreAnswer(
                        environment: environment ?? .production, httpStatus: 200, body: bytes, failure: nil, calls: 1,
                        usedPreviousSecret: isOwn && request.secret != state.secret, elapsedMilliseconds: 1)
                }
            }
        }
    }

    struct World: Sendable {
        let served: ServedLedger
        let store: Store
        let tracker: Tracker

        /// The same database and store, as another process sees them.
        var elsewhere: Tracker { .quiet(served.ledger, appStore: store.client) }
        var app: App { get async throws { try await served.ledger.apps.app(ServedLedger.app) } }

        static func with(_ body: @escaping @Sendable (World) async throws -> Void) async throws {
            try await ServedLedger.with { served in
                let store = Store()
                try await body(
                    World(served: served, store: store, tracker: .quiet(served.ledger, appStore: store.client)))
            }
        }

        /// Sends a receipt of the app's own, or of another app, and says how it was answered.
        @discardableResult
        func send(_ number: Int, own: StoreEnvironment? = nil, isBought: Bool = false) async throws -> Outcome? {
            let receipt = Sample.receipt(number)
            if isBought { store.change { _ = $0.bought.insert(receipt) } }
            if let own { store.change { $0.own[receipt] = own } }
            let answer = try await tracker.submit(
                Submission(bundleID: ServedLedger.app, customer: "c\(number)", receipt: receipt))
            guard case .settled(let settled, _) = answer else { return nil }
            return settled.outcome
        }

        /// Pauses an environment, as a refused trial does; the next trial is an hour away.
        func pause(_ environment: StoreEnvironment) async throws {
            try await served.run(
                """
                INSERT INTO ledger.secret_trial AS t (app_id, environment, paused_since, try_at)
                SELECT app_id, '\(environment.rawValue)', now(), now() + interval '1 h' FROM ledger.app
                WHERE bundle_id = 'com.example.app'
                ON CONFLICT (app_id, environment) DO UPDATE SET paused_since = now(), try_at = now() + interval '1 h'
                """)
        }

        /// Lets the minute between two trials pass.
        func minutePasses() async throws {
            try await served.run("UPDATE ledger.secret_trial SET try_at = now() WHERE try_at < now() + interval '61 s'")
        }

        func due() async throws -> Int {
            try await served.run(
                "UPDATE ledger.poll_schedule SET due_at = now() - interval '1 s' WHERE leased_by IS NULL")
            return try await served.ledger.claims.due(limit: 100).reduce(0) { $0 + $1.receipts }
        }

        func text(_ sql: String) async throws -> String? {
            try await served.database.query(.init(name: "one", sql: "SELECT (\(sql))::text AS one")).first?
                .textIfPresent("one")
        }
    }

    @Test("Another app's receipts, however many, pause nothing, and cost one trial a minute in all processes")
    func foreign() async throws {
        try await World.with { world in
            #expect(try await world.send(0, own: .production) == .verified)
            for number in 1...5 { #expect(try await world.send(number) == .rejected) }
            _ = world.store.calls
            await world.elsewhere.trySecrets()
            #expect(world.store.calls == 1)
            for _ in 0..<5 {
                #expect(try await world.send(1) == .rejected)
                await world.elsewhere.trySecrets()
            }
            #expect(world.store.calls == 5, "the next trial is a minute away")
            let app = try await world.app
            #expect(app.pauses.isEmpty && app.secretDoubts.isEmpty)
            #expect(try await world.send(6, own: .production) == .verified)
            try await world.minutePasses()
            _ = world.store.calls
            await world.tracker.trySecrets()
            #expect(world.store.calls == 0, "an acceptance since the refused call is enough")
            #expect(try await world.due() == 7)
            #expect(try await world.text("SELECT max(rejections) FROM ledger.receipt") == "0")
        }
    }

    @Test("A secret that was rotated at Apple pauses the app by one trial, and the pause ends by a trial alone")
    func rotated() async throws {
        try await World.with { world in
            for number in 0...2 { #expect(try await world.send(number, own: .production) == .verified) }
            let claim = try await world.served.ledger.claims.claim(
                ReceiptID(3), for: try await world.tracker.identity.worker(of: world.tracker), leaseSeconds: 60)
            world.store.change { $0.secret = "rotated" }
            #expect(try await world.send(0) == .rejected)
            #expect(try await world.app.pauses.isEmpty)
            await world.elsewhere.trySecrets()
            let pause = try #require(try await world.app.pauses.first)
            #expect(try await world.app.pause == nil && pause.environment == .production)
            #expect(pause.reason.contains("21004") && pause.reason.contains("Production"))
            #expect(try await world.due() == 0)
            _ = world.store.calls
            #expect(try await world.send(1) == nil, "the upload waits")
            #expect(world.store.calls == 0)
            // Verified before, never suspect.
            #expect(try await world.text("SELECT count(*) FROM ledger.receipt WHERE outcome = 'verified'") == "3")
            #expect(
                try await world.text("SELECT max(attempts) FROM ledger.poll_schedule WHERE leased_by IS NULL") == "0")

            // An answer that was under way, the clock, and an outage do not end it.
            world.store.change { $0.secret = "shared secret" }
            _ = try await world.tracker.check(claim)
            world.store.change { $0.secret = "rotated" }
            try await world.served.run("UPDATE ledger.secret_trial SET paused_since = paused_since - interval '1 day'")
            world.store.change { $0.answers = false }
            try await world.minutePasses()
            await world.tracker.trySecrets()
            #expect(try await !world.app.pauses.isEmpty)
            #expect(
                try await world.text("SELECT try_at > now() + interval '90 s' FROM ledger.secret_trial") == "true",
                "without an answer the next trial waits longer")
            world.store.change { $0.answers = true }

            try await world.served.ledger.apps.rotateSecret(of: ServedLedger.app, to: "mistyped", previous: "older")
            await world.tracker.trySecrets()
            #expect(try await !world.app.pauses.isEmpty, "a wrong secret ends no pause")
            try await world.served.ledger.apps.rotateSecret(of: ServedLedger.app, to: "rotated")
            #expect(try await !world.app.pauses.isEmpty)
            await world.tracker.trySecrets()
            #expect(try await world.app.pauses.isEmpty)
            #expect(try await world.due() == 3)
            #expect(try await world.send(3, own: .production) == .verified)
        }
    }

    @Test("A second wrong secret in a row pauses the app by one trial, as the first does")
    func wrongAgain() async throws {
        try await World.with { world in
            for number in 0...2 { #expect(try await world.send(number, own: .production) == .verified) }
            let apps = world.served.ledger.apps
            try await apps.rotateSecret(of: ServedLedger.app, to: "wrong")
            // Nothing was asked in between, so that the right secret is not known to be the one before.
            try await apps.rotateSecret(of: ServedLedger.app, to: "wrong again")
            _ = world.store.calls
            #expect(try await world.send(0) == .rejected)
            await world.elsewhere.trySecrets()
            #expect(world.store.calls == 2, "one receipt and one trial")
            #expect(try await world.app.pauses.map(\.environment) == [.production])
            #expect(try await world.due() == 0)
            try await apps.rotateSecret(of: ServedLedger.app, to: "wrong once more")
            #expect(try await world.send(1) == nil, "the pause stays")
            try await apps.rotateSecret(of: ServedLedger.app, to: "shared secret")
            await world.tracker.trySecrets()
            #expect(try await world.app.pauses.isEmpty)
        }
    }

    @Test(
        "While Apple accepts only the previous secret the status says so, and another wrong one does not replace that")
    func previousAlone() async throws {
        try await World.with { world in
            let (ledger, apps) = (world.served.ledger, world.served.ledger.apps)
            for number in 0...2 { #expect(try await world.send(number, own: .production) == .verified) }
            try await apps.rotateSecret(of: ServedLedger.app, to: "wrong")
            #expect(try await world.app.previousSecrets.isEmpty, "nothing is known of it yet")
            for number in 0...1 { #expect(try await world.send(number) == .verified) }
            #expect(try await world.send(9) == .rejected, "another app's")
            let app = try await world.app
            #expect(Array(app.previousSecrets.keys) == [.production] && app.secretDoubts.isEmpty && app.pauses.isEmpty)
            let status = try await ledger.operations.status()
            #expect(status.previousSecrets.map(\.bundleID) == [ServedLedger.app])
            for (environment, value) in [("Production", 1.0), ("Sandbox", 0)] {
                #expect(try await ledger.gauge(.previousSecret, ("environment", environment)) == value)
            }

            try await apps.rotateSecret(of: ServedLedger.app, to: "wrong again")
            #expect(try apps.secrets(of: try await world.app).previous == "shared secret")
            #expect(try await world.send(0) == .verified)
            #expect(try await world.app.previousSecrets.count == 1)
            world.store.change { $0.secret = "rotated" }
            #expect(try await world.send(1) == .rejected)
            await world.elsewhere.trySecrets()
            let paused = try await world.app
            #expect(paused.previousSecrets.isEmpty && paused.pauses.map(\.environment) == [.production])
            try await apps.rotateSecret(of: ServedLedger.app, to: "rotated")
            #expect(try apps.secrets(of: try await world.app).previous == "wrong again")
            await world.tracker.trySecrets()
            #expect(try await world.send(0) == .verified)
            #expect(try await world.app.previousSecrets.isEmpty)
        }
    }

    @Test("A secret that was accepted and is refused now counts no more while the previous one is accepted")
    func previousAgain() async throws {
        try await World.with { world in
            #expect(try await world.send(0, own: .production) == .verified)
            try await world.served.ledger.apps.rotateSecret(of: ServedLedger.app, to: "new")
            for (secret, isPrevious) in [("new", false), ("shared secret", true), ("new", false)] {
                world.store.change { $0.secret = secret }
                for number in 0...1 { #expect(try await world.send(number, own: .production) == .verified) }
                #expect(try await world.app.previousSecrets.isEmpty != isPrevious, "\(secret)")
            }
        }
    }

    @Test("The sandbox pauses alone: production is asked, and the sandbox's receipts lose no attempt")
    func sandbox() async throws {
        try await World.with { world in
            #expect(try await world.send(0, own: .production) == .verified)
            #expect(try await world.send(1, own: .sandbox) == .verified)
            try await world.pause(.sandbox)
            let app = try await world.app
            #expect(app.pause == nil && app.pauses.map(\.environment) == [.sandbox])
            #expect(try await world.due() == 1)
            _ = world.store.calls
            #expect(try await world.send(0) == .verified)
            #expect(try await world.send(1) == nil)
            #expect(world.store.calls == 1)
            // A worker that claims the sandbox's receipt asks nothing.
            let worker = try await world.tracker.identity.worker(of: world.tracker)
            let claim = try await world.served.ledger.claims.claim(ReceiptID(2), for: worker, leaseSeconds: 60)
            let batch = try await world.tracker.check(claim)
            #expect(world.store.calls == 0 && batch.unasked.count == 1)
            #expect(try await world.text("SELECT attempts FROM ledger.poll_schedule WHERE receipt_id = 2") == "0")
            #expect(try await world.text("SELECT outcome FROM ledger.receipt WHERE receipt_id = 2") == "verified")
        }
    }

    @Test("A secret that Apple never accepted pauses nothing: each receipt waits on its own, longer and longer")
    func unproved() async throws {
        try await World.with { world in
            world.store.change { $0.secret = "another" }
            #expect(try await world.send(0, own: .production) == .rejected)
            #expect(try await world.send(1, own: .production) == .rejected)
            _ = world.store.calls
            await world.tracker.trySecrets()
            #expect(world.store.calls == 0)
            let app = try await world.app
            #expect(app.pauses.isEmpty)
            #expect(app.secretDoubts == [App.SecretDoubt(environment: .production, receipts: 2)])
            let wait = "SELECT extract(epoch FROM due_at - now())::int FROM ledger.poll_schedule WHERE receipt_id = 1"
            let first = try #require(try await world.text(wait).flatMap { Int($0) })
            #expect((280...320).contains(first))
            try await world.served.run("UPDATE ledger.receipt SET received_at = now() - interval '2 days'")
            #expect(try await world.send(0) == .rejected)
            let later = try #require(try await world.text(wait).flatMap { Int($0) })
            #expect((43_000...45_100).contains(later), "a quarter of its age")
            #expect(try await world.text("SELECT lane FROM ledger.poll_schedule WHERE receipt_id = 1") == "sweep")

            // The right secret asks about all of them at once.
            try await world.served.ledger.apps.rotateSecret(of: ServedLedger.app, to: "another")
            #expect(try await world.served.ledger.claims.due(limit: 100).reduce(0) { $0 + $1.receipts } == 2)
            #expect(try await world.send(0) == .verified)
            #expect(try await world.app.secretDoubts == [])
        }
    }

    @Test(
        "Where only one-time purchases were bought, a refused secret is seen, although the sandbox accepted it before",
        arguments: [false, true])
    func oneTimeAlone(wasProved: Bool) async throws {
        try await World.with { world in
            #expect(try await world.send(0, own: .sandbox) == .verified)
            for number in 1...2 {
                #expect(try await world.send(number, own: .production, isBought: true) == .verified)
            }
            if wasProved {
                // By a receipt that cannot tell any more.
                #expect(try await world.send(3, own: .production) == .verified)
                try await world.served.run("UPDATE ledger.receipt SET erased_at = now() WHERE receipt_id = 4")
            }
            world.store.change { $0.secret = "rotated" }
            for number in [1, 2, 1] { #expect(try await world.send(number) == .rejected) }
            await world.tracker.trySecrets()
            let app = try await world.app
            #expect(app.pauses.isEmpty, "only the refused receipts wait")
            let doubt = App.SecretDoubt(environment: .production, receipts: 2, isUntold: true)
            #expect(app.secretDoubts == [doubt])
            let status = try await world.served.ledger.operations.status()
            #expect(status.doubtfulSecrets.map(\.bundleID) == [ServedLedger.app])
            #expect(try await world.due() > 0)
            try await world.minutePasses()
            await world.elsewhere.trySecrets()
            #expect(try await world.app.secretDoubts == [doubt])

            world.store.change { $0.secret = "shared secret" }
            try await world.minutePasses()
            await world.elsewhere.trySecrets()
            #expect(try await world.app.secretDoubts == [], "the sandbox tells that the secret is right")
        }
    }

    @Test(
        "Another app's receipts raise no doubt in an environment without receipts, where the other one accepts the secret"
    )
    func foreignElsewhere() async throws {
        try await World.with { world in
            #expect(try await world.send(0, own: .sandbox) == .verified)
            for number in 1...3 { #expect(try await world.send(number) == .rejected) }
            #expect(try await world.app.secretDoubts == [])
            _ = world.store.calls
            await world.elsewhere.trySecrets()
            #expect(world.store.calls == 1)
            let app = try await world.app
            #expect(app.secretDoubts == [] && app.pauses.isEmpty)
        }
    }

    @Test(
        "A secret is tried only on receipts that verifyReceipt vouched for, whatever polls their subscriptions",
        arguments: SubmittedForm.allCases, [false, true])
    func readable(form: SubmittedForm, isVouched: Bool) async throws {
        try await World.with { world in
            #expect(try await world.send(0, own: .production) == .verified)
            try await world.served.run(
                """
                SET LOCAL session_replication_role = replica;
                INSERT INTO ledger.receipt
                    (app_id, digest, form, data, transaction_id, vouched, environment, outcome, asked_at, verified_at)
                SELECT app_id, sha256('1'::bytea), '\(form.rawValue)'::ledger.receipt_form, '1'::bytea, '1', \(isVouched),
                       environment, outcome, now(), now()
                FROM ledger.receipt;
                INSERT INTO ledger.receipt_subscription (receipt_id, subscription_id)
                SELECT 2, subscription_id FROM ledger.subscription;
                UPDATE ledger.subscription SET polled_by = 2;
                """)
            let tells = form == .receipt && isVouched
            let telling: [Int64] = tells ? [2, 1] : [1]
            let verdict = tells ? SecretProbe.refused(ReceiptID(2)) : SecretProbe.noReceipt
            for environment in [StoreEnvironment.production, nil] {
                let found = try await world.served.ledger.apps.tellingReceipts(
                    of: world.app, in: environment, limit: 3)
                #expect(found.map(\.receiptID.number) == telling)
            }
            try await world.served.run("UPDATE ledger.receipt SET erased_at = now() WHERE receipt_id = 1")
            _ = world.store.calls
            #expect(try await world.tracker.probeSecret("new", of: world.app) == verdict)
            try await world.pause(.production)
            try await world.served.run("UPDATE ledger.secret_trial SET try_at = now()")
            await world.tracker.trySecrets()
            #expect(world.store.calls == (tells ? 2 : 0))
        }
    }

    @Test("A refusal in a call that began with another secret says nothing against the present one")
    func lateRefusal() async throws {
        try await World.with { world in
            #expect(try await world.send(0, own: .production) == .verified)
            let claim = try await world.served.ledger.claims.claim(
                ReceiptID(1), for: try await world.tracker.identity.worker(of: world.tracker), leaseSeconds: 60)
            world.store.change { $0.secret = "rotated" }
            try await world.served.ledger.apps.rotateSecret(of: ServedLedger.app, to: "rotated")
            #expect(try await world.tracker.check(claim).settled.first?.outcome == .rejected)
            #expect(try await world.app.secretDoubts.isEmpty)
            _ = world.store.calls
            await world.tracker.trySecrets()
            #expect(world.store.calls == 0)
        }
    }

    @Test("The verdict on a secret that was replaced meanwhile changes nothing")
    func replaced() async throws {
        try await World.with { world in
            #expect(try await world.send(0, own: .production) == .verified)
            let before = try await world.app
            #expect(try await world.send(1) == .rejected)
            let trial = try #require(try await world.served.ledger.apps.takeSecretTrials(every: 60).first)
            try await world.served.ledger.apps.rotateSecret(of: ServedLedger.app, to: "shared secret")
            try await world.served.ledger.apps.settle(trial, of: before, .refused, isProof: false, every: 60)
            #expect(try await world.app.pauses.isEmpty)
        }
    }

    @Test("Receipts about which Apple never answers slow nobody down while it answers about one that it vouched for")
    func silence() async throws {
        try await World.with { world in
            #expect(try await world.send(0, own: .production) == .verified)
            for number in 1...20 { try await world.send(number) }
            let worker = try await world.tracker.identity.worker(of: world.tracker)
            let windows = OutcomeWindows()
            /// Only calls that begin after a change of the rate say anything, so each round claims anew.
            func round(_ numbers: ClosedRange<Int64>) async throws {
                var answers: [Checked] = []
                for number in numbers {
                    let claim = try await world.served.ledger.claims.claim(
                        ReceiptID(number), for: worker, leaseSeconds: 60)
                    answers.append(Checked(claim, .saying(number == 1 ? Sample.verified() : nil)))
                }
                await world.tracker.adaptRates(to: answers, windows)
            }
            for _ in 0..<4 { try await round(1...21) }
            var app = try await world.app
            #expect(app.pauses.isEmpty && app.callsPerSecondNow == 0 && app.appleFailures == 0)
            for _ in 0..<3 { try await round(2...21) }
            app = try await world.app
            #expect(app.rateLimit.failures > 2 && app.appleFailures > 2, "nothing else shows how Apple is")
        }
    }

    @Test("A refused bundle id is counted, and the most frequent ones stay")
    func refusedBundles() async throws {
        try await World.with { world in
            let app = try await world.app
            for round in 0..<30 {
                try await world.served.ledger.intake.countRefused(["com.often": 2], of: app)
                try await world.served.ledger.intake.countRefused([BundleID("com.rare\(round)"): 1], of: app)
            }
            let found = try await world.served.ledger.operations.status().refusedBundles
            #expect(found.count == 20 && found.allSatisfy { $0.bundleID == ServedLedger.app && $0.isOnly })
            #expect(found.first { $0.named == "com.often" }?.receipts == 60)
            #expect(found.contains { $0.named == "com.rare29" })
        }
    }
}
