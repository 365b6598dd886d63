import Foundation
import Postgres
import SeededRandom
import Subscriptions
import Synchronization
import TestSupport
import Testing

@testable import Tracking

@Suite("A webhook delivers every event, and an event that fails holds back its own stream alone")
struct WebhookTests {
    private static let away = WebhookOutcome.failed(WebhookFailure(status: 503, reason: "It answered 503."))

    @Test("Events come in the order of each stream, with the customer's state, and the mirror is right")
    func delivers() async throws {
        try await withLedger(connections: 4) { test in
            var random = Seeded(seed: 1)
            try await test.live(60, &random)
            let (id, receiver) = (try await test.addWebhook(), PretendReceiver())
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            let newest = try await test.ledger.feed.head().position
            #expect(receiver.positions.sorted() == Array(1...newest))
            #expect(receiver.memory.disorder == [])
            #expect(try await test.differences(of: receiver) == [])
            #expect(Set(receiver.taken.map(\.id)).count == Int(newest))
            try await test.expectSound()
        }
    }

    @Test("An event that is never taken holds back its own stream, and a skip lets it go on")
    func poison() async throws {
        try await withLedger(connections: 4) { test in
            for name in ["ann", "bob", "cia"] {
                for right in ["one", "two"] { try await grant(right, to: name, in: test) }
            }
            try await test.ledger.feed.sequenceAll()
            let id = try await test.addWebhook()
            let receiver = PretendReceiver { $0.data.position == 3 ? Self.away : .delivered }
            try await test.runOwner(receiver) {
                let webhook = try await test.ledger.webhooks.webhook(id)
                return webhook.behind == 0 && webhook.waiting == 1 && receiver.calls > 6
            }
            #expect(receiver.positions.sorted() == [1, 2, 5, 6])
            let waiting = try #require(try await test.ledger.webhooks.waiting(for: id).first)
            #expect(
                waiting.position == 3 && waiting.customer == "bob" && waiting.status == 503 && waiting.attempts >= 1)
            #expect(waiting.kind == "entitlements.changed" && waiting.reason == "It answered 503.")
            await #expect(throws: LedgerError.self) {
                try await test.ledger.webhooks.skip(4, of: id, because: "it is not the first")
            }
            try await test.ledger.webhooks.skip(3, of: id, because: "it is poison")
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            #expect(receiver.positions.sorted() == [1, 2, 4, 5, 6])
            try await test.expectSound()
        }
    }

    @Test("A receiver that is away leaves few lines, and gets everything in order when it is back")
    func rests() async throws {
        try await withLedger(connections: 4) { test in
            for number in 0..<40 { try await grant("right", to: "c\(number)", in: test) }
            try await test.ledger.feed.sequenceAll()
            let (id, receiver) = (try await test.addWebhook(concurrency: 4), PretendReceiver { _ in Self.away })
            try await test.runOwner(receiver) { try await test.ledger.webhooks.webhook(id).state == .resting }
            let resting = try await test.ledger.webhooks.webhook(id)
            #expect(resting.waiting <= 8 && resting.position <= 8 && resting.reason == "It answered 503.")
            receiver.answer { _ in .delivered }
            try await test.runOwner(receiver, speedup: 100) { try await test.isIdle(id) }
            #expect(Set(receiver.positions) == Set(1...40))
            #expect(receiver.memory.disorder == [])
        }
    }

    @Test("A webhook whose first event is poison does not rest for ever")
    func poisonFirst() async throws {
        try await withLedger(connections: 4) { test in
            for number in 0..<30 { try await grant("right", to: "c\(number)", in: test) }
            try await test.ledger.feed.sequenceAll()
            let (id, receiver) = (try await test.addWebhook(), PretendReceiver { _ in Self.away })
            try await test.runOwner(receiver) { try await test.ledger.webhooks.webhook(id).state == .resting }
            let next = try await test.ledger.webhooks.webhook(id).position + 1
            receiver.answer { $0.data.position == next ? Self.away : .delivered }
            try await test.runOwner(receiver, speedup: 1_000) {
                let webhook = try await test.ledger.webhooks.webhook(id)
                return webhook.behind == 0 && webhook.waiting == 1 && webhook.state == .on
            }
            #expect(Set(receiver.positions) == Set(1...30).subtracting([next]))
        }
    }

    @Test("410 turns a webhook off, with an alert; on again, it sends what it missed")
    func gone() async throws {
        try await withLedger(connections: 4) { test in
            try await grant("right", to: "ann", in: test)
            try await test.ledger.feed.sequenceAll()
            let (id, receiver) = (try await test.addWebhook(), PretendReceiver { _ in .gone })
            try await test.runOwner(receiver) { try await test.ledger.webhooks.webhook(id).state == .off }
            let troubles = try await test.ledger.webhooks.troubles()
            #expect(troubles.map(\.id) == [id])
            #expect(troubles.map(\.trouble) == ["is off: its receiver answered 410, so it wants no more"])
            #expect(try await test.ledger.webhooks.lease(limit: 1).isEmpty)
            receiver.answer { _ in .delivered }
            try await test.ledger.webhooks.set(id, isOn: true)
            #expect(try await test.ledger.webhooks.troubles().isEmpty)
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            #expect(receiver.positions == [1])
        }
    }

    @Test("A slow call holds no window up, and its answer counts")
    func slow() async throws {
        try await withLedger(connections: 4) { test in
            for name in ["ann", "bob"] { try await grant("right", to: name, in: test) }
            try await test.ledger.feed.sequenceAll()
            let id = try await test.addWebhook()
            let receiver = PretendReceiver { heard in
                if heard.data.customer == "ann" { try? await Task.sleep(for: .seconds(4)) }
                return .delivered
            }
            try await test.runOwner(receiver) {
                if try await test.ledger.feed.head().position == 2, receiver.positions == [2],
                    try await test.ledger.webhooks.webhook(id).waiting == 1
                {
                    try await grant("another", to: "ann", in: test)
                    try await test.ledger.feed.sequenceAll()
                }
                guard try await test.ledger.feed.head().position == 3 else { return false }
                return try await test.isIdle(id)
            }
            #expect(receiver.positions == [2, 1, 3])
            #expect(receiver.calls == 3)
        }
    }

    @Test("What waits is drained as fast as a window is")
    func drains() async throws {
        try await withLedger(connections: 4) { test in
            for number in 0..<300 { try await grant("right\(number)", to: "c\(number % 20)", in: test) }
            try await test.ledger.feed.sequenceAll()
            let id = try await test.addWebhook()
            let receiver = PretendReceiver { _ in
                try? await Task.sleep(for: .milliseconds(20))
                return .delivered
            }
            var seconds: [Duration] = []
            for isWaiting in [false, true] {
                try await test.ledger.webhooks.replay(id, from: .beginning)
                if isWaiting {
                    try await test.run(
                        """
                        UPDATE ledger.webhook SET position = (SELECT position FROM ledger.feed);
                        INSERT INTO ledger.webhook_line (webhook_id, stream_of, stream_id, position)
                        SELECT \(id), 'customer', e.customer_id, min(f.position)
                        FROM ledger.event e JOIN ledger.event_feed f USING (event_id) GROUP BY e.customer_id
                        """)
                }
                let began = ContinuousClock.now
                try await test.runOwner(receiver) { try await test.isIdle(id) }
                seconds.append(ContinuousClock.now - began)
            }
            #expect(receiver.positions.sorted() == (1...300).flatMap { [$0, $0] })
            #expect(receiver.memory.disorder == [])
            #expect(seconds[1] < seconds[0] * 2 + .seconds(1), "\(seconds)")
            print("webhook: a window took \(seconds[0]), what waited \(seconds[1])")
        }
    }

    @Test("A change by hand takes a webhook from its worker: a replay sends everything after it once more")
    func seized() async throws {
        try await withLedger(connections: 4) { test in
            for number in 0..<5 { try await grant("right", to: "c\(number)", in: test) }
            try await test.ledger.feed.sequenceAll()
            let id = try await test.addWebhook()
            let held = try #require(try await test.ledger.webhooks.lease(limit: 1).first)
            try await test.ledger.webhooks.replay(id, from: .beginning)
            #expect(try await test.ledger.webhooks.look(at: held) == nil)
            #expect(try await test.ledger.webhooks.move(held, to: 5) == false)
            let receiver = PretendReceiver()
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            try await test.ledger.webhooks.replay(id, from: .position(4))
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            #expect(receiver.positions.sorted() == [1, 2, 3, 4, 4, 5, 5])
            #expect(Set(receiver.taken.map(\.id)).count == 5)
            await #expect(throws: LedgerError.self) {
                try await test.ledger.webhooks.replay(id, from: .position(7))
            }
            try await test.ledger.webhooks.remove(id)
            #expect(try await test.ledger.webhooks.all().isEmpty)
        }
    }

    @Test("No call begins in the last 20 seconds of a lease")
    func quiet() async throws {
        try await withLedger(connections: 4) { test in
            for number in 0..<5 { try await grant("right", to: "c\(number)", in: test) }
            try await test.ledger.feed.sequenceAll()
            let id = try await test.addWebhook()
            let left = Mutex<[Double]>([])
            let receiver = PretendReceiver { _ in
                let row = try? await test.row(
                    "SELECT extract(epoch FROM lease_until - clock_timestamp())::float8 FROM ledger.webhook")
                if case .number(let seconds) = row?.first { left.withLock { $0.append(seconds) } }
                return .delivered
            }
            try await test.runOwner(receiver, lease: 18) { try await test.isIdle(id) }
            #expect(receiver.positions.sorted() == [1, 2, 3, 4, 5])
            #expect(left.withLock { $0.count == 5 && $0.allSatisfy { $0 > 20 } }, "\(left.withLock { $0 })")
        }
    }

    @Test("A window that is committed once more takes nothing back")
    func committedTwice() async throws {
        try await withLedger(connections: 4) { test in
            for number in 0..<5 { try await grant("right", to: "c\(number)", in: test) }
            try await test.ledger.feed.sequenceAll()
            let id = try await test.addWebhook()
            let held = try #require(try await test.ledger.webhooks.lease(limit: 1).first)
            #expect(try await test.ledger.webhooks.move(held, to: 5))
            #expect(try await test.ledger.webhooks.move(held, to: 3))
            #expect(try await test.ledger.webhooks.webhook(id).position == 5)
        }
    }

    @Test("What waits about a customer who is erased is sent no more")
    func erasedWhileWaiting() async throws {
        try await withLedger(connections: 4) { test in
            for name in ["ann", "bob"] { try await grant("right", to: name, in: test) }
            try await test.ledger.feed.sequenceAll()
            let id = try await test.addWebhook()
            let receiver = PretendReceiver { $0.data.customer == "ann" ? Self.away : .delivered }
            try await test.runOwner(receiver) {
                let webhook = try await test.ledger.webhooks.webhook(id)
                return webhook.behind == 0 && webhook.waiting == 1
            }
            _ = try await test.ledger.customers.erase(
                "ann", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "asked"))
            try await test.ledger.webhooks.retry(id)
            let calls = receiver.calls
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            #expect(receiver.calls == calls && receiver.positions == [2])
        }
    }

    @Test("Kinds, apps and erased customers are left out; kinds and starts that cannot be are refused")
    func filters() async throws {
        try await withLedger(connections: 4) { test in
            try await grant("right", to: "ann", in: test)
            try await test.check(try await test.upload("a", by: "bob"), Answer(from: test.at(-9), asOf: test.at(-2)))
            try await test.ledger.feed.sequenceAll()
            let id = try await test.addWebhook(kinds: ["subscription.started", "entitlements.changed"])
            _ = try await test.ledger.customers.erase(
                "ann", of: test.app.bundleID, deciding: ManualDecision(by: "kim", because: "asked"))
            let receiver = PretendReceiver()
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            #expect(receiver.taken.map(\.heard.type) == ["subscription.started"])
            let webhooks = test.ledger.webhooks
            for url in [
                "ftp://a/", "http://8.8.8.8/", "https://169.254.169.254/", "https://a@b/",
                "https://[::ffff:a9fe:a9fe]/",
            ] {
                await #expect(throws: LedgerError.self) { try await webhooks.add(url: url) }
            }
            await #expect(throws: LedgerError.self) { try await webhooks.add(url: "https://a/", kinds: ["renewed"]) }
            await #expect(throws: LedgerError.self) { try await webhooks.add(url: "https://a/", kinds: []) }
            await #expect(throws: LedgerError.self) { try await webhooks.add(url: "https://a/", concurrency: 65) }
            await #expect(throws: LedgerError.self) { try await webhooks.add(url: "https://a/", from: .position(99)) }
            await #expect(throws: LedgerError.self) { try await webhooks.add(url: "https://a/", app: "com.example.no") }
            #expect(throws: LedgerError.self) { try WebhookSecret("whsec_c2hvcnQ=") }
        }
    }

    @Test("After a restore messages keep their ids, and each counts although its position does not rise")
    func restored() async throws {
        try await withLedger(connections: 4) { test in
            try await test.check(try await test.upload("a", by: "ann"), Answer(from: test.at(-9), asOf: test.at(-2)))
            try await test.ledger.feed.sequenceAll()
            let (id, receiver) = (try await test.addWebhook(), PretendReceiver())
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            _ = try await test.ledger.feed.renew()
            try await test.ledger.apps.applyCatalog(
                [CatalogProduct(id: "monthly", entitlements: ["gold"])], to: test.app.bundleID)
            try await test.ledger.webhooks.replay(id, from: .beginning)
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            let taken = receiver.taken
            #expect(taken.count == 2 * Set(taken.map(\.id)).count)
            let feeds = Set(taken.map { "\($0.heard.data.feed) since \($0.heard.data.feed_since)" })
            #expect(feeds.count == 2)
            #expect(receiver.memory.rights["ann"]?.map(\.entitlement).contains("gold") == true)
            #expect(try await test.differences(of: receiver) == [])
        }
    }

    @Test("After a restore a replay from the beginning corrects the mirror, without those whom it does not confirm")
    func mirrorAfterRestore() async throws {
        try await withLedger(connections: 4) { test in
            for name in ["ann", "bob"] { try await grant("right", to: name, in: test) }
            try await test.ledger.feed.sequenceAll()
            let (id, receiver) = (try await test.addWebhook(), PretendReceiver())
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            let mirror = receiver.memory
            // What the lost data knew: the end of a grant, and a customer of its own.
            let since = try #require(receiver.taken.first?.heard.data.feed_since)
            try mirror.take(position: 3, "ann", "[]", since: since)
            try mirror.take(
                position: 4, "zoe", #"[{"entitlement":"right","environment":"Production","from":null,"until":null}]"#,
                since: since)
            _ = try await test.ledger.feed.renew()
            try await test.ledger.webhooks.replay(id, from: .position(3))
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            #expect(try await mirror.differencesByClock(from: test.database) == ["ann right", "zoe right"])
            try await test.ledger.webhooks.replay(id, from: .beginning)
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            mirror.dropUnconfirmed()
            #expect(try await mirror.differencesByClock(from: test.database) == [])
            #expect(try await test.differences(of: receiver) == [])
        }
    }

    @Test("Each secret signs until the rotation is finished, also where it is made again because its answer was lost")
    func rotations() async throws {
        try await withLedger(connections: 4) { test in
            let webhooks = test.ledger.webhooks
            let (webhook, first) = try await webhooks.add(url: "https://example.com/")
            let id = webhook.id
            let lost = try #require(try await webhooks.rotateSecret(of: id))
            let newest = try #require(try await webhooks.rotateSecret(of: id))
            for own in [nil, newest, newest] {
                if let own { _ = try await webhooks.rotateSecret(of: id, to: own) }
                #expect(try await webhooks.secrets(of: id) == [newest, lost, first])
            }
            for _ in 0..<7 { _ = try await webhooks.rotateSecret(of: id) }
            let refusal = await #expect(throws: LedgerError.self) { try await webhooks.rotateSecret(of: id) }
            #expect(refusal?.kind == .exists && refusal?.message.contains("--finish") == true)
            _ = try await webhooks.rotateSecret(of: id, to: newest)
            let signing = try await webhooks.secrets(of: id)
            #expect(signing.count == 10 && signing.first == newest && signing.last == first)
            _ = try await webhooks.rotateSecret(of: id, finish: true)
            for own in [nil, newest] {
                if let own { _ = try await webhooks.rotateSecret(of: id, to: own) }
                #expect(try await webhooks.secrets(of: id) == [newest])
                #expect(try await webhooks.webhook(id).hasPreviousSecret == false)
            }
        }
    }

    @Test("A new catalog is in what a replay sends")
    func catalog() async throws {
        try await withLedger(connections: 4) { test in
            try await test.check(try await test.upload("a", by: "ann"), Answer(from: test.at(-9), asOf: test.at(-2)))
            try await test.ledger.feed.sequenceAll()
            let (id, receiver) = (try await test.addWebhook(), PretendReceiver())
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            try await test.ledger.apps.applyCatalog(
                [CatalogProduct(id: "monthly", entitlements: ["gold"])], to: test.app.bundleID)
            let fresh = PretendReceiver()
            try await test.ledger.webhooks.replay(id, from: .beginning)
            try await test.runOwner(fresh) { try await test.isIdle(id) }
            #expect(fresh.memory.rights["ann"]?.map(\.entitlement).contains("gold") == true)
            #expect(try await test.differences(of: fresh) == [])
        }
    }

    @Test("After three days away and with one event that is never taken, the mirror is right for every other customer")
    func threeDays() async throws {
        try await withLedger(connections: 4) { test in
            var random = Seeded(seed: 45)
            print(random)
            let (id, receiver) = (try await test.addWebhook(), PretendReceiver { _ in Self.away })
            // A day passes in 0.864 seconds.
            for day in 1...3 {
                try await test.live(25, &random)
                let night = ContinuousClock.now + .milliseconds(864)
                try await test.runOwner(receiver, speedup: 1e5) {
                    ContinuousClock.now > night && receiver.calls > day * 8
                }
            }
            #expect(try await test.ledger.webhooks.webhook(id).state == .resting)
            #expect(receiver.calls > 20 && receiver.taken.isEmpty)
            let poisoned = Mutex<(position: Int64, customer: String?)?>(nil)
            receiver.answer { heard in
                poisoned.withLock { poisoned in
                    if poisoned == nil, heard.type == "entitlements.changed" {
                        poisoned = (heard.data.position, heard.data.customer)
                    }
                    return poisoned?.position == heard.data.position ? Self.away : .delivered
                }
            }
            try await test.runOwner(receiver, speedup: 1e5) {
                let webhook = try await test.ledger.webhooks.webhook(id)
                return webhook.behind == 0 && webhook.waiting <= 1 && webhook.state == .on
            }
            let customer = try #require(poisoned.withLock { $0?.customer })
            #expect(try await test.differences(of: receiver, except: [customer]) == [])
        }
    }

    private static let rounds: [UInt64] =
        ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] == nil ? Array(1...4) : Array(1...200)

    @Test("The waits are those of the documents, and a receiver that asks for more gets it")
    func pace() {
        let (pace, failure) = (WebhookPace(), WebhookFailure(reason: "It answered 500."))
        let hours: [Double] = [0, 5 / 3_600, 5 / 60, 0.5, 2, 5, 10, 14, 20, 24, 24, 24]
        for (index, usual) in hours.enumerated() {
            for _ in 0..<20 {
                let waited = pace.retry(after: index + 1, failure) / 3_600
                #expect(usual * 0.8...usual * 1.2 ~= waited, "after \(index + 1)")
            }
        }
        #expect((1...7).map { pace.rest($0, failure) } == [5, 15, 60, 300, 900, 900, 900])
        let busy = WebhookFailure(status: 429, reason: "It answered 429.", retryAfterSeconds: 3_000)
        #expect(pace.retry(after: 1, busy) == 3_000 && pace.rest(1, busy) == 3_000)
        #expect(WebhookPace(speedup: 1_000).rest(1, busy) == 3_000)
        #expect(WebhookPace(speedup: 1_000).rest(5, failure) == 0.9)
    }

    @Test("Kills of worker, receiver and database lose nothing and disturb no order", arguments: rounds)
    func kills(seed: UInt64) async throws {
        try await withNewLedger(connections: 4) { test in
            var random = Seeded(seed: seed)
            print(random)
            let id = try await test.addWebhook(concurrency: Int.random(in: 1...16, using: &random))
            let lost = Mutex((random: Seeded(seed: seed), answers: 0))
            let receiver = PretendReceiver()
            // The receiver fails before or after it took a message, or its answer is late.
            receiver.answer { [unowned receiver] heard in
                let fate = lost.withLock { Int.random(in: 0..<20, using: &$0.random) }
                switch fate {
                case 0: return Self.away
                case 1:
                    lost.withLock { $0.answers += 1 }
                    receiver.memory.take("lost", heard)
                    return .failed(WebhookFailure(reason: "It closed the connection without an answer."))
                case 2:
                    try? await Task.sleep(for: .milliseconds(30))
                    return .delivered
                default: return .delivered
                }
            }
            var kills = 0
            for _ in 0..<Int.random(in: 2...4, using: &random) {
                try await test.live(Int.random(in: 5...25, using: &random), &random)
                let calls = receiver.calls + Int.random(in: 1...20, using: &random)
                // At most one kill of the database in a round.
                let willKill = Mutex(Bool.random(using: &random))
                try await test.runOwner(receiver, speedup: 1e4) {
                    if receiver.calls * 2 > calls,
                        willKill.withLock({ kill in
                            defer { kill = false }; return kill
                        })
                    {
                        _ = try? await test.database.query(
                            .test(
                                """
                                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                                WHERE datname = current_database() AND pid <> pg_backend_pid()
                                """))
                    }
                    let isIdle = (try? await test.isIdle(id)) ?? false
                    return receiver.calls >= calls || isIdle
                }
                kills += 1
            }
            try await test.runOwner(receiver, speedup: 1e4) { (try? await test.isIdle(id)) ?? false }
            let newest = try await test.ledger.feed.head().position
            #expect(Set(receiver.positions) == Set(1...newest))
            #expect(receiver.memory.disorder == [])
            #expect(try await test.differences(of: receiver) == [])
            let often = Dictionary(receiver.positions.map { ($0, 1) }, uniquingKeysWith: +).values.max() ?? 0
            #expect(often <= 1 + 2 * kills + lost.withLock { $0.answers })
            try await test.expectSound()
        }
    }

    private func grant(_ right: String, to customer: String, in test: TestLedger) async throws {
        _ = try await test.ledger.customers.grant(
            right, to: customer, of: test.app.bundleID, until: nil,
            deciding: ManualDecision(by: "kim", because: "a test"))
    }
}
