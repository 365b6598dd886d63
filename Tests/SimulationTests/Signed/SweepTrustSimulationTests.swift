import AppStoreSimulator
import Foundation
import Ledger
import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Server
@testable import Tracking

@Suite("With --sweep auto an app's notifications decide how rare its refund checks are")
struct SweepTrustSimulationTests {
    @Test("Reported refunds lengthen the sweeps; once notifications stop, sweeps are as before and find every refund")
    func earnedAndLost() async throws {
        var options = SimulatorOptions(seed: 20_261_125)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (200, 0, 75)
        options.chances = .quiet
        try await PretendWorld.with(options) { world in
            // Without a key no history of notifications is read, which would report refunds too.
            try await world.tracker.ledger.apps.removeServerKey(of: world.bundleID)
            try await world.trust(reported: 185, factor: 1)
            try await world.checkEverything()
            try await world.hearing(dropped: 0, doubled: 0, reordered: 0) {
                try await world.working {
                    let earned = try await world.refundingUntilTrusted()
                    print("earned: \(earned)")
                    #expect(earned.factor == 2 && earned.reported >= 189 && earned.lowerBound >= 0.98)
                    world.dropNotifications()
                    let lost = try await world.standing { $0.factor == 1 }
                    print("lost: \(lost)")
                    #expect(lost.isSilent && lost.lowerBound >= 0.98)
                    let before = try await world.refundEvents()
                    let refunded = try await world.refund(20)
                    try await world.eventually(within: 90) { try await world.refundEvents() >= before + refunded }
                }
            }
            try await world.expectNoViolations()
        }
    }

    @Test("At full trust at most six of ten calls are left, over the same lives")
    func calls() async throws {
        async let normal = Self.calls(.normal)
        async let auto = Self.calls(.auto)
        let (usual, few) = try await (normal, auto)
        print("calls: normal \(usual), auto at full trust \(few), \(Double(few) / Double(usual))")
        #expect(usual > 400)
        #expect(Double(few) <= 0.6 * Double(usual))
    }

    /// The calls of a month and a half of quiet lives with notifications.
    private static func calls(_ sweep: SweepFrequency) async throws -> Int {
        var options = SimulatorOptions(seed: 20_261_126)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (150, 0, 30)
        (options.traits.sendsRenewals, options.traits.withoutSubscription) = (0, 0)
        options.chances = .quiet
        var calls = 0
        try await PretendWorld.with(options) { world in
            if sweep == .auto { try await world.trust(reported: 2_000, factor: 4) }
            try await world.checkEverything()
            let before = world.simulator.callCount
            try await world.hearing(dropped: 0, doubled: 0, reordered: 0) { try await world.work(seconds: 40) }
            calls = world.simulator.callCount - before
            guard sweep == .auto else { return }
            let standing = try #require(try await world.tracker.ledger.operations.sweepStandings().first)
            #expect(standing.factor == 4, "\(standing)")
        }
        return calls
    }
}
