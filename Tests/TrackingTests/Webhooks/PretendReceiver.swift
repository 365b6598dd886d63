import Foundation
import Postgres
import SeededRandom
import Subscriptions
import Synchronization
import TestSupport

@testable import Tracking

/// A receiver in this process: it answers by a script, and remembers what it took.
final class PretendReceiver: Sendable {
    /// Answers one message. It may take its time.
    typealias Script = @Sendable (Heard) async -> WebhookOutcome

    /// What it took.
    let memory = WebhookMirror()
    private let called = Mutex(0)
    private let script: Mutex<Script>
    private let watcher = Mutex<@Sendable (WebhookCall) -> Void>({ _ in })

    /// A receiver that answers by a script, by default always 2xx.
    init(_ script: @escaping Script = { _ in .delivered }) {
        self.script = Mutex(script)
    }

    /// Answers later calls by another script.
    func answer(_ next: @escaping Script) { script.withLock { $0 = next } }

    /// Shows every call to `watcher`.
    func watch(_ watcher: @escaping @Sendable (WebhookCall) -> Void) { self.watcher.withLock { $0 = watcher } }

    var sender: WebhookSender {
        WebhookSender { [self] call in
            watcher.withLock { $0 }(call)
            guard let heard = try? JSONDecoder().decode(Heard.self, from: Data(call.body)) else {
                return .failed(
                    WebhookFailure(reason: "The body is no message: \(String(decoding: call.body, as: UTF8.self))"))
            }
            called.withLock { $0 += 1 }
            let answer = script.withLock { $0 }
            let outcome = await answer(heard)
            if case .delivered = outcome { memory.take(call.id, heard) }
            return outcome
        }
    }

    var taken: [(id: String, heard: Heard)] { memory.taken }
    var positions: [Int64] { memory.positions }
    var calls: Int { called.withLock { $0 } }
}

extension TestLedger {
    /// Adds a webhook that begins with the first event, or at `start`.
    func addWebhook(kinds: [String]? = nil, concurrency: Int = 16, from start: WebhookStart = .beginning) async throws
        -> Int32
    {
        try await ledger.webhooks.add(
            url: "http://127.0.0.1:1/", kinds: kinds, concurrency: concurrency, from: start
        ).webhook.id
    }

    /// Runs the owner of the only free webhook until `isDone`, then ends it as a kill does: it commits nothing more.
    /// - Parameter seconds: What is left of its lease.
    func runOwner(
        _ receiver: PretendReceiver, speedup: Double = 1, lease seconds: Double = LedgerWebhooks.leaseSeconds,
        until isDone: @escaping @Sendable () async throws -> Bool
    ) async throws {
        let begin = ContinuousClock.now - .seconds(LedgerWebhooks.leaseSeconds - seconds)
        // A database that was killed may refuse the first statements.
        var leased: HeldWebhook?
        while leased == nil {
            _ = try? await run("UPDATE ledger.webhook SET lease_until = '-infinity'")
            leased = (try? await ledger.webhooks.lease(limit: 1))?.first
        }
        guard let held = leased else { return }
        if seconds < LedgerWebhooks.leaseSeconds {
            try await run(
                "UPDATE ledger.webhook SET lease_until = clock_timestamp() + \(seconds) * interval '1 second'")
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [ledger] in
                var owner = WebhookOwner(
                    ledger: ledger.webhooks, sender: receiver.sender, pace: WebhookPace(speedup: speedup), held: held,
                    onOutcome: { _ in }, leaseEnd: begin + .seconds(LedgerWebhooks.leaseSeconds))
                await owner.run { body in
                    do {
                        try await body()
                        return true
                    } catch {
                        // The database may be killed under it: the next round tries again.
                        try? await Task.sleep(for: .milliseconds(20))
                        return false
                    }
                }
            }
            while try await !isDone() { try await Task.sleep(for: .milliseconds(20)) }
            group.cancelAll()
        }
        await reconnect()
    }

    /// Uses each connection once or twice, so that those that were killed are replaced.
    private func reconnect() async {
        for _ in 0..<2 {
            await withTaskGroup { group in
                for _ in 0..<8 { group.addTask { _ = try? await run("SELECT pg_sleep(0.02)") } }
            }
            _ = try? await ledger.feed.head()
        }
    }

    /// Whether a webhook has nothing left to send.
    func isIdle(_ id: Int32) async throws -> Bool {
        let webhook = try await ledger.webhooks.webhook(id)
        return webhook.behind == 0 && webhook.waiting == 0 && webhook.state != .resting
    }

    /// The customers about whom a receiver's mirror and `perennial.entitlement_now` differ.
    func differences(of receiver: PretendReceiver, except: Set<String> = []) async throws -> [String] {
        try await receiver.memory.differences(from: database, except: except)
    }

    /// Makes some random changes: grants, ends of grants, merges, splits, new and renewed subscriptions, new owners.
    func live(_ count: Int, _ random: inout Seeded) async throws {
        let decision = try ManualDecision(by: "kim", because: "a test")
        let customers = ledger.customers
        for _ in 0..<count {
            let one = "c\(Int.random(in: 0..<6, using: &random))"
            let other = "c\(Int.random(in: 0..<6, using: &random))"
            let number = Int.random(in: 0..<5, using: &random)
            // Some changes are not possible at the moment, such as a merge of what is merged.
            do {
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<3:
                    _ = try await customers.grant(
                        "right\(number)", to: one, of: app.bundleID, until: Bool.random(using: &random) ? at(90) : nil,
                        deciding: decision)
                case 3:
                    _ = try await customers.revokeGrant(
                        of: "right\(number)", from: one, of: app.bundleID, deciding: decision)
                case 4: _ = try await customers.merge(one, into: other, of: app.bundleID, deciding: decision)
                case 5: _ = try await customers.split(one, of: app.bundleID, deciding: decision)
                case 6:
                    _ = try await customers.assign(
                        OriginalTransactionID("s\(number)"), to: one, of: app.bundleID, deciding: decision)
                default:
                    let periods = Int.random(in: 1...4, using: &random)
                    try await check(
                        try await upload("receipt \(number)", by: one),
                        Answer(from: at(-29 * Double(periods)), periods: periods, asOf: try await ledger.now()).but {
                            $0.subscription = OriginalTransactionID("s\(number)")
                            $0.willRenew = Bool.random(using: &random)
                        })
                }
            } catch let error as LedgerError where error.kind != .mismatch {
            } catch  where error.storageFailure != nil {}
        }
        while ((try? await ledger.feed.sequence()) ?? 1) > 0 {}
    }
}
