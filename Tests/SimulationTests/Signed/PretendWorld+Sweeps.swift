import AppStoreSimulator
import Foundation
import Ledger
import ServiceLifecycle
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

extension PeriodChances {
    /// Lives in which customers leave and cards fail, and nothing else happens by itself.
    static var quiet: PeriodChances {
        var chances = PeriodChances()
        (chances.wavers, chances.refunds, chances.olderRefunds, chances.refundReversals) = (0, 0, 0, 0)
        (chances.cancels, chances.billingFailures) = (0.04, 0.02)
        (chances.upgrades, chances.downgrades, chances.crossgrades, chances.extensions) = (0, 0, 0, 0)
        (chances.priceIncreases, chances.withdrawals, chances.unexplainedEnds, chances.redeemedOffers) = (0, 0, 0, 0)
        (chances.revocations, chances.accountDeletions, chances.comebacks) = (0, 0, 0)
        return chances
    }
}

extension PretendWorld {
    /// Sets `--sweep auto`, with a past in which notifications reported so many refunds and missed none.
    func trust(reported: Int, factor: Int) async throws {
        var change = AppChange()
        change.sweep = .auto
        try await tracker.ledger.apps.change(bundleID, change)
        try await tracker.ledger.operations.judgeSweeps()
        let mature = SweepTrust.matureAfter.divided(by: speedup).milliseconds + 1_000
        try await run(
            """
            INSERT INTO ledger.sweep_proof (app_id, began_at, reported, missed)
            SELECT app_id, now() - \(mature) * interval '1 millisecond', \(reported), 0 FROM ledger.sweep_trust;
            UPDATE ledger.sweep_trust SET factor = \(factor), all_swept_since = CASE WHEN \(factor) = 1 THEN now() END;
            """)
    }

    /// Has Apple refund customers, a few at a time, until notifications are trusted. A slow machine may miss one of them,
    /// which many more have to make up for.
    func refundingUntilTrusted() async throws -> SweepStanding {
        for _ in 0..<12 {
            try await refund(8)
            let trusted = try await standing { $0.factor > 1 || $0.missed > 0 }
            if trusted.factor > 1 { return trusted }
        }
        return try await standing { $0.factor > 1 }
    }

    /// Runs a worker while `body` runs.
    func working(_ body: @escaping @Sendable () async throws -> Void) async throws {
        let group = ServiceGroup(
            configuration: .init(services: [.init(service: Worker(tracker))], logger: .quiet))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            do { try await body() } catch {
                await group.triggerGracefulShutdown()
                throw error
            }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    /// Has Apple refund the running periods of as many customers; returns how many it could refund.
    @discardableResult
    func refund(_ count: Int) async throws -> Int {
        var refunded = 0
        for truth in simulator.truth() where refunded < count {
            let refunds = truth.subscriptions.flatMap(\.log).count { $0.kind == .refunded }
            guard refunds == 0, (try? simulator.act(CustomerAction(.refund), on: truth.customer)) == true else {
                continue
            }
            refunded += 1
            try await Task.sleep(for: .milliseconds(100))
        }
        return refunded
    }

    /// From now on no notification arrives.
    func dropNotifications() {
        var options = NotificationOptions(url: "http://127.0.0.1:9/v1/notifications/none")
        options.shareDropped = 1
        simulator.notify(options)
    }

    /// Waits until the app's standing is as expected, and returns it.
    func standing(_ isExpected: (SweepStanding) -> Bool) async throws -> SweepStanding {
        let read = { try await tracker.ledger.operations.sweepStandings().first }
        try await eventually(within: 90) { try await read().map(isExpected) ?? false }
        return try #require(try await read())
    }

    /// Waits until `condition` holds; records an issue after some seconds.
    func eventually(within seconds: Double, _ condition: () async throws -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(seconds)
        while try await !condition() {
            guard ContinuousClock.now < end else {
                Issue.record("not within \(seconds) s")
                return
            }
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    /// The refunds that the ledger knows of.
    func refundEvents() async throws -> Int {
        try await tracker.ledger.feed.sequenceAll()
        let page = try await tracker.ledger.feed.read(after: 0, limit: 10_000)
        return page.events.count { $0.kind == "refund.granted" }
    }
}
