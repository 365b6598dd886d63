import AppStoreSimulator
import Foundation
import Ledger
import Subscriptions
import Testing
import Tracking

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
            try await world.work(seconds: 14)
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

    private func expectAgreement(
        in world: PretendWorld, of known: Set<String>, renewalsMin: Int
    ) async throws {
        world.clock.stop()
        // One sweep reads everything.
        try await world.run("UPDATE ledger.receipt SET reads_whole = true")
        try await world.checkEverything()
        let reported = try await world.reported()
        var renewals = 0
        for customer in world.simulator.truth()
        where !customer.accountDeleted && !customer.hasLegacyReceipts && known.contains(customer.customer) {
            for truth in customer.subscriptions {
                try AgreementTests.agree(truth, customer, reported, renewals: &renewals)
            }
        }
        #expect(renewals > renewalsMin, "the population hardly lived; this test would prove little")
        try await AgreementTests.expectDenseFeed(world)
        let rebuilt = try await world.rebuild(correcting: false)
        #expect(rebuilt.differences == [])
        #expect(rebuilt.gaps.map(\.reason) == [])
        try await world.expectNoViolations()
    }
}

extension AppChange {
    fileprivate static func verifying(by verifier: Verifier) -> AppChange {
        var change = AppChange()
        change.verifier = verifier
        return change
    }
}
