import AppStoreSimulator
import Crypto
import Foundation
import Logging
import Subscriptions
import Synchronization
import TestSupport
import Testing

@testable import AppStore
@testable import Tracking

/// The Server API as the verifier, against the simulator over HTTP.
@Suite("Under the Server API the ledger and the simulator agree")
struct ServerAgreementTests {
    private static func options(seed: UInt64) -> SimulatorOptions {
        var options = SimulatorOptions(seed: seed)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (48, 6, 6)
        return options
    }

    @Test("An app that only knows StoreKit 2 lives two months: periods, owners, access and events are equal")
    func signedTransactions() async throws {
        try await PretendWorld.with(Self.options(seed: 20_261_124), importing: .signedTransactions) { world in
            try await world.tracker.ledger.apps.change(world.bundleID, .verifying(by: .serverAPI))
            let known = try Set(world.simulator.signedTransactions().map(\.customer))
            let checks = ServerChecks()
            try await world.counting(in: checks).work(seconds: 14)
            checks.expectTwoCalls(checksMin: 60)
            try await expectAgreement(in: world, of: known, renewalsMin: 40)
        }
    }

    @Test("The same with a third of the notifications dropped, doubled and reordered beside it")
    func notified() async throws {
        try await PretendWorld.with(Self.options(seed: 20_261_127), importing: .signedTransactions) { world in
            try await world.tracker.ledger.apps.change(world.bundleID, .verifying(by: .serverAPI))
            let known = try Set(world.simulator.signedTransactions().map(\.customer))
            let checks = ServerChecks()
            try await world.hearing(dropped: 0.3, doubled: 0.3, reordered: 0.3) {
                try await world.counting(in: checks).work(seconds: 14)
            }
            checks.expectTwoCalls(checksMin: 60)
            let counts = try await world.notificationCounts()
            print("notifications: \(counts)")
            #expect(counts["applied"] ?? 0 > 40)
            try await expectAgreement(in: world, of: known, renewalsMin: 40)
        }
    }

    @Test("An app of receipts moves to the Server API: no event is doubled, and all is equal")
    func moved() async throws {
        try await PretendWorld.with(Self.options(seed: 20_261_125)) { world in
            let known = Set(world.simulator.receipts().map(\.customer))
            try await world.work(seconds: 5)
            let before = world.simulator.serverCallCount
            try await world.tracker.ledger.apps.change(world.bundleID, .verifying(by: .serverAPI))
            try await world.work(seconds: 9)
            #expect(world.simulator.serverCallCount > before)
            try await expectAgreement(in: world, of: known, renewalsMin: 40)
        }
    }

    @Test("An upload without a receipt says how far its sender is believed, and one transaction is one upload")
    func uploads() async throws {
        var options = Self.options(seed: 20_261_126)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (12, 0, 600)
        try await PretendWorld.with(options, importing: .signedTransactions) { world in
            let tracker = world.tracker
            let devices = try world.simulator.signedTransactions()
            let device = try #require(devices.first { $0.environment == .production })
            let first = try await settled(in: world, .signedTransaction(device.signedTransaction), by: device.customer)
            #expect(first.outcome == .verified && first.vouching == .signed)
            let texts = try world.simulator.signedTransactions(of: device.customer) ?? []
            let again = try #require(texts.first { $0.transactionID == device.transactionID })
            let repeated = try await settled(
                in: world, .signedTransaction(again.signedTransaction), by: device.customer)
            #expect(repeated.receiptID == first.receiptID, "another text about the same transaction")
            let stranger = try await settled(in: world, .transactionID(device.transactionID), by: "eve")
            #expect(stranger.outcome == .verified && stranger.vouching == .pointer)
            for outcome in stranger.subscriptions {
                guard case .refused? = outcome.ownership[AppCustomerID("eve")] else {
                    Issue.record("\(outcome)")
                    continue
                }
            }
            let unknown = try await settled(in: world, .transactionID("2000000999999999"), by: "eve")
            #expect(unknown.outcome == .rejected && unknown.refusal == .unknownTransaction)
            try await tracker.ledger.apps.add("com.example.other")
            try await tracker.ledger.apps.storeServerKey(
                try ConnectKey(pem: PretendWorld.serverKey.pemRepresentation, id: "S2", issuer: "I"),
                of: "com.example.other")
            let foreign = Submission(
                bundleID: "com.example.other", customer: "eve", subject: .signedTransaction(device.signedTransaction))
            await #expect(throws: UploadRefusal.self) { _ = try await tracker.submit(foreign) }
            let stored = try await tracker.ledger.customers.receipts(app: "com.example.other")
            #expect(stored.isEmpty)
        }
    }

    @Test("A device that restored has other ids for the same purchases: they are its customer's, under its own ids")
    func restored() async throws {
        var options = Self.options(seed: 20_261_128)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (24, 0, 600)
        try await PretendWorld.with(options, importing: .signedTransactions) { world in
            try await world.checkEverything()
            var kinds: Set<Bool> = []
            for customer in try Set(world.simulator.signedTransactions().map(\.customer)).sorted() {
                let restored = try world.simulator.signedTransactions(of: customer, restore: 1) ?? []
                let own = try world.simulator.signedTransactions(of: customer) ?? []
                for device in restored {
                    #expect(!own.contains { $0.transactionID == device.transactionID })
                    let found = try await settled(
                        in: world, .signedTransaction(device.signedTransaction), by: customer)
                    // The account was deleted, and Apple knows nothing of it any more.
                    if found.refusal == .unknownTransaction { continue }
                    #expect(found.outcome == .verified && found.vouching == .signed, "\(found.reason ?? "")")
                    let held = try await world.tracker.ledger.intake.purchases(
                        in: found.receiptID, for: customer)
                    let item = try #require(held.item(device.transactionID), "\(device.transactionID) of \(customer)")
                    #expect(item.isOwned && own.contains { item.transactionIDs.contains($0.transactionID) })
                    kinds.insert(item.isPeriod)
                }
                guard let other = try world.simulator.signedTransactions(of: customer, restore: 2)?.first else {
                    continue
                }
                let pointer = try await settled(in: world, .transactionID(other.transactionID), by: customer)
                if pointer.refusal == .unknownTransaction { continue }
                #expect(pointer.outcome == .verified && pointer.vouching == .pointer, "\(pointer.reason ?? "")")
                let held = try await world.tracker.ledger.intake.purchases(
                    in: pointer.receiptID, for: customer)
                #expect(held.item(other.transactionID) != nil)
            }
            #expect(kinds == [true, false], "periods and purchases were both restored")
            let rebuilt = try await world.rebuild(correcting: false)
            #expect(rebuilt.differences == [])
            try await world.expectNoViolations()
        }
    }

    private func settled(
        in world: PretendWorld, _ subject: Submission.Subject, by customer: String
    ) async throws -> Settled {
        let submission = Submission(bundleID: world.bundleID, customer: customer, subject: subject)
        switch try await world.tracker.submit(submission) {
        case .settled(let settled, customer: _): return settled
        case .pending(_, let reason, _): throw LedgerError(.busy, reason)
        }
    }

    private func expectAgreement(
        in world: PretendWorld, of known: Set<String>, renewalsMin: Int
    ) async throws {
        world.clock.stop()
        // One sweep reads everything.
        try await world.run("UPDATE ledger.receipt SET history_revision = NULL")
        try await world.checkEverything()
        try await AgreementTests.expectAgreement(in: world, of: known, renewalsMin: renewalsMin)
        let rebuilt = try await world.rebuild(correcting: false)
        #expect(rebuilt.differences == [])
        #expect(rebuilt.gaps.map(\.reason) == [])
        try await world.expectNoViolations()
    }
}

/// The checks of the Server API in a while.
private final class ServerChecks: Sendable {
    private struct Counts {
        var (firstSights, checks, calls, readingOn) = (0, 0, 0, 0)
    }

    private let counts = Mutex(Counts())

    /// Counts a check.
    func add(_ request: ServerRequest, _ answer: AppStoreAnswer) {
        counts.withLock { counts in
            guard !request.isFirstSight else { return counts.firstSights += 1 }
            counts.checks += 1
            counts.calls += answer.calls
            counts.readingOn += request.revision == nil ? 0 : 1
        }
    }

    /// Expects that a check that is no first sight reads on, and takes two calls: the statuses, and the history since the stored
    /// revision.
    func expectTwoCalls(checksMin: Int) {
        let counts = counts.withLock { $0 }
        let mean = Double(counts.calls) / Double(max(1, counts.checks))
        print("checks of the Server API: \(counts.checks), calls: \(counts.calls), first sights: \(counts.firstSights)")
        #expect(counts.firstSights > 0 && counts.checks > checksMin, "this would prove little")
        #expect(mean > 1.9 && mean <= 2.1)
        #expect(counts.readingOn > counts.checks * 9 / 10)
    }
}

extension PretendWorld {
    /// The same world, whose checks of the Server API are counted.
    fileprivate func counting(in checks: ServerChecks) -> PretendWorld {
        var store = tracker.appStore
        let server = store.server
        store.server = ServerAPIClient(support: server.support) { request in
            let answer = await server.read(request)
            checks.add(request, answer)
            return answer
        }
        let counted = Tracker(
            ledger: tracker.ledger, appStore: store, options: tracker.options, logger: .quiet,
            signedTexts: tracker.signedTexts)
        return PretendWorld(
            simulator: simulator, clock: clock, tracker: counted, connectionString: connectionString, port: port,
            bundleID: bundleID, speedup: speedup)
    }
}

extension AppChange {
    static func verifying(by verifier: Verifier) -> AppChange {
        var change = AppChange()
        change.verifier = verifier
        return change
    }
}
