import AppStoreSimulator
import Foundation
import Postgres
import SeededRandom
import Subscriptions
import TestSupport
import Testing
import Tracking

/// A worker as a process, a receiver over HTTP and a database server of its own. In each round customers change, and one of
/// the three is killed.
@Suite("Whatever is killed, a webhook delivers every event", .serialized)
struct WebhookKillTests {
    private enum Victim: String, CaseIterable {
        case worker, receiver, database
    }

    @Test("8 rounds, each with a kill, deliver every event in the order of its stream", .timeLimit(.minutes(5)))
    func fewRounds() async throws {
        try await rounds(8, seed: 20_261_126)
    }

    @Test(
        "200 rounds, each with a kill, deliver every event in the order of its stream", .timeLimit(.minutes(30)),
        .enabled(if: ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil, "scripts/test --all runs it"))
    func manyRounds() async throws {
        try await rounds(200, seed: 45)
    }

    private func rounds(_ count: Int, seed: UInt64) async throws {
        let cluster = try await PrivateCluster()
        try await cluster.start()
        var options = SimulatorOptions(seed: seed)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (12, 0, 8_640)
        try await PretendWorld.with(options, leaseSeconds: 10, connectionString: cluster.connectionString) { world in
            let receiver = MortalReceiver()
            try await receiver.start()
            let added = try await world.tracker.ledger.webhooks.add(url: receiver.url, from: .beginning)
            receiver.know(added.secret)
            var worker = try PerennialProcess(["worker"], in: world)
            defer { worker.kill() }
            var random = Seeded(seed: seed)
            var kills: [Victim: Int] = [:]
            for round in 0..<count {
                var drawn = Seeded(seed: random.next())
                let changes = Task { [drawn] in await change(world, Seeded(seed: drawn.seed &+ 1)) }
                let victim = Victim.allCases[(round + Int(seed % 3)) % 3]
                // While it delivers what changed.
                let messages = receiver.memory.taken.count + Int.random(in: 1...12, using: &drawn)
                let patience = ContinuousClock.now + .milliseconds(500)
                while receiver.memory.taken.count < messages, ContinuousClock.now < patience {
                    try await Task.sleep(for: .milliseconds(2))
                }
                switch victim {
                case .worker:
                    #expect(worker.process.isRunning, "\(worker.said)")
                    worker.kill()
                    _ = await worker.end()
                    try worker.forget()
                    // The rest of its minute passes.
                    try await world.run("UPDATE ledger.webhook SET lease_until = '-infinity'")
                    worker = try PerennialProcess(["worker"], in: world)
                case .receiver:
                    await receiver.kill()
                    try await Task.sleep(for: .milliseconds(Int.random(in: 0...300, using: &drawn)))
                    try await receiver.start()
                case .database:
                    try await cluster.stop(immediate: true)
                    try await Task.sleep(for: .milliseconds(Int.random(in: 0...300, using: &drawn)))
                    try await cluster.start()
                }
                kills[victim, default: 0] += 1
                await changes.value
            }
            try await expectAll(of: added.webhook.id, from: receiver, kills: kills.values.reduce(0, +), in: world)
            print("webhook: \(kills.map { "\($0.key.rawValue) \($0.value)" }.sorted()) kills, seed \(seed)")
            #expect(await worker.stop() == 0, "\(worker.said)")
            try worker.forget()
            await receiver.kill()
        }
        try await cluster.stop(immediate: true)
        try await cluster.remove()
    }

    /// Expects that the receiver has every event, and that its mirror is right.
    private func expectAll(of id: Int32, from receiver: MortalReceiver, kills: Int, in world: PretendWorld) async throws
    {
        let ledger = world.tracker.ledger
        var differences = ["nothing was compared"]
        let patience = ContinuousClock.now + .seconds(120)
        while !differences.isEmpty, ContinuousClock.now < patience {
            try await Task.sleep(for: .milliseconds(100))
            // The connections of before a kill may be broken.
            guard let webhook = try? await ledger.webhooks.webhook(id) else { continue }
            guard webhook.behind == 0, webhook.waiting == 0, webhook.state == .on else {
                differences = ["\(webhook)"]
                continue
            }
            differences = try await world.differences(from: receiver.memory)
        }
        #expect(differences == [])
        let newest = try await ledger.feed.head().position
        let often = Dictionary(receiver.memory.positions.map { ($0, 1) }, uniquingKeysWith: +)
        #expect(often.keys.sorted() == Array(1...newest))
        #expect(often.values.max() ?? 0 <= 1 + kills, "an event came again without a kill")
        let repeated = receiver.memory.taken.count - often.count
        #expect(repeated <= kills * LedgerWebhooks.windowEventsMax)
        let ids = Dictionary(grouping: receiver.memory.taken, by: \.heard.data.position)
        #expect(
            ids.values.allSatisfy { Set($0.map(\.id)).count == 1 }
                && Set(receiver.memory.taken.map(\.id)).count == ids.count)
        #expect(receiver.memory.disorder == [])
        #expect(receiver.refused == 0)
        print("webhook: \(newest) events, \(repeated) of them repeated")
        try await world.expectNoViolations()
    }

    /// Makes some changes: grants and their ends, merges and splits, and receipts of one customer from another. What is not
    /// possible, such as while the database is away, does not happen.
    private func change(_ world: PretendWorld, _ drawn: Seeded) async {
        var random = drawn
        let everybody = world.simulator.receipts()
        let customers = world.tracker.ledger.customers
        guard let decision = try? ManualDecision(by: "kim", because: "a test") else { return }
        for _ in 0..<Int.random(in: 10...40, using: &random) {
            let one = everybody[Int.random(in: 0..<everybody.count, using: &random)]
            let other = everybody[Int.random(in: 0..<everybody.count, using: &random)]
            let right = "right\(Int.random(in: 0..<3, using: &random))"
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4:
                _ = try? await customers.grant(
                    right, to: one.customer, of: world.bundleID, until: nil, deciding: decision)
            case 4:
                _ = try? await customers.revokeGrant(
                    of: right, from: one.customer, of: world.bundleID, deciding: decision)
            case 5:
                _ = try? await customers.merge(
                    one.customer, into: other.customer, of: world.bundleID, deciding: decision)
            case 6: _ = try? await customers.split(one.customer, of: world.bundleID, deciding: decision)
            default:
                _ = try? await world.tracker.submit(
                    Submission(bundleID: world.bundleID, customer: other.customer, receipt: one.receipt))
            }
        }
    }
}

extension PretendWorld {
    /// The customers about whom a mirror and `perennial.entitlement_now` differ.
    fileprivate func differences(from memory: WebhookMirror) async throws -> [String] {
        let database = Database(DatabaseConfiguration(connectionString: connectionString)) { print("world: \($0)") }
        let found = try await memory.differences(from: database) + memory.differencesByClock(from: database)
        await database.close()
        return found
    }
}
