import AppStoreSimulator
import Foundation
import JSON
import Postgres
import Server
import SQL
import Testing
import TestSupport
import Tracking

@testable import perennial

/// What reports count is what the feed tells, and what happened in the pretend App Store.
@Suite("Reports agree with the feed and with the simulator", .serialized)
struct ReportAgreementTests {
    private static func options(seed: UInt64, customers: Int, monthSeconds: Double) -> SimulatorOptions {
        var options = SimulatorOptions(seed: seed)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (customers, 0, monthSeconds)
        // Receipts of iOS 6 show the newest period only, and of a deleted account Apple says nothing.
        (options.traits.legacyReceipt, options.chances.accountDeletions) = (0, 0)
        return options
    }

    @Test("Trials go as in the feed and in truth; those that were over at first sight go as in truth")
    func trials() async throws {
        var options = Self.options(seed: 20_261_126, customers: 150, monthSeconds: 36)
        (options.traits.freeTrial, options.pastPeriodsMax) = (0.9, 0)
        try await with(options) { world, database in
            // On a busy machine most trials are over before their first check, and later ones count.
            for _ in 1...6 where try await !ReportedTrials(database).proveMuch { try await world.work(seconds: 7) }
            world.clock.stop()
            try await world.checkEverything()
            // What was charged ahead counts from its date on, by the database's clock, which goes on.
            let starts = world.simulator.truth().flatMap(\.subscriptions).flatMap(\.periods).map(\.purchase)
            let ahead = (starts.max() ?? 0) - Int64(Date().timeIntervalSince1970 * 1_000)
            if ahead >= 0 { try await Task.sleep(for: .milliseconds(ahead + 10)) }
            let reported = try await ReportedTrials(database)
            var truths: [String: String] = [:]
            var late: Set<String> = []
            for truth in world.simulator.truth().flatMap(\.subscriptions) where truth.ownership == "PURCHASED" {
                guard truth.periods.first?.isTrial == true else { continue }
                let id = truth.originalTransactionID
                let firstSight = try #require(reported.firstSights[id], "\(id) is unknown")
                truths[id] = truth.trialOutcome
                // Whether a trial that ended within this second goes on is not booked yet.
                if truth.isUnbooked { truths[id] = reported.outcomes[id] }
                guard !truth.trialRuns(at: firstSight) else { continue }
                late.insert(id)
                // Without the feed, the next period within an hour of the end goes on with it; here that is months.
                if truth.isFollowed(at: firstSight) { truths[id] = "converted" }
            }
            #expect(reported.outcomes == truths)
            for (id, outcome) in reported.outcomes where !late.contains(id) {
                #expect((outcome == "converted") == reported.converted.contains(id), "\(id) in the feed")
                #expect((outcome == "lost") == reported.expired.contains(id), "\(id) in the feed")
            }
            #expect(late.count > 5 && reported.proveMuch, "this would prove little")
            let counts = Dictionary(grouping: truths.values) { $0 }.mapValues(\.count)
            let columns = ["started", "converted", "lost", "undecided"]
            let sums = try await added(of: "trial_cohorts", columns, in: database)
            #expect(sums == [truths.count, counts["converted"] ?? 0, counts["lost"] ?? 0, counts["undecided"] ?? 0])
            let decided = try await added(of: "trials", Array(columns.prefix(3)), in: database)
            #expect(decided == Array(sums.prefix(3)))
        }
    }

    @Test("Failures that run at first sight are in the report of billing recovery")
    func failures() async throws {
        let options = Self.options(seed: 20_261_127, customers: 200, monthSeconds: 3_600)
        try await with(options) { world, database in
            world.clock.stop()
            try await world.checkEverything()
            let failing = world.simulator.truth().flatMap(\.subscriptions).filter(\.inBillingRetry)
            let sums = try await added(of: "billing_recovery", ["failures", "undecided", "with_grace"], in: database)
            #expect(sums == [failing.count, failing.count, failing.count { $0.graceUntil != nil }])
            #expect(failing.count > 3, "this would prove little")
        }
    }

    private func with(_ options: SimulatorOptions, _ body: (PretendWorld, Database) async throws -> Void) async throws {
        try await withTestDatabase { database, connectionString in
            try await PretendWorld.with(options, leaseSeconds: 10, connectionString: connectionString) { world in
                try await body(world, database)
                try await world.expectNoViolations()
            }
        }
    }

    /// The sums of a report's columns.
    private func added(of report: String, _ columns: [String], in database: Database) async throws -> [Int] {
        let file = try #require(Reports.all.first { $0.name == report })
        let statement = ReportStatement(file.text)
        let values = try statement.values([:], report: report)
        let listing = try await database.transaction { try Listing(of: statement, values, in: $0) }
        return try columns.map { column in
            let place = try #require(listing.columns.firstIndex(of: column))
            return listing.rows.reduce(into: 0) { sum, row in
                if case .integer(let number) = row[place] { sum += Int(number) }
            }
        }
    }
}

/// What the schema `perennial` tells of trials, by original transaction id.
private struct ReportedTrials {
    /// Apple's clock at first sight, in milliseconds.
    let firstSights: [String: Int64]
    /// `converted`, `lost` or `undecided`, of the trials that reports count.
    let outcomes: [String: String]
    /// The feed says `trial.converted`.
    let converted: Set<String>
    /// The feed says `trial.expired`, and no conversion after it.
    let expired: Set<String>

    var proveMuch: Bool { converted.count > 5 && expired.count > 5 }

    init(_ database: Database) async throws {
        let rows = try await database.query(
            Statement(
                name: "trials_told",
                sql: """
                    SELECT k.original_transaction_id AS id, first.as_of, t.outcome,
                           EXISTS (SELECT FROM perennial.event_log e
                                   WHERE e.original_transaction_id = k.original_transaction_id
                                     AND e.kind = 'trial.converted') AS converted,
                           EXISTS (SELECT FROM perennial.event_log e
                                   WHERE e.original_transaction_id = k.original_transaction_id
                                     AND e.kind = 'trial.expired') AS expired
                    FROM perennial.subscription_key k
                    JOIN perennial.subscription_event first
                        ON first.stream_id = k.stream_id AND first.kind IN ('subscription.started', 'trial.started')
                    LEFT JOIN perennial.trials_as_known('infinity') t ON t.stream_id = k.stream_id
                    """))
        var (firstSights, outcomes) = ([String: Int64](), [String: String]())
        var (converted, expired) = (Set<String>(), Set<String>())
        for row in rows {
            let id = try row.text("id")
            firstSights[id] = try row.timestamptz("as_of") / 1000
            if let outcome = try row.textIfPresent("outcome") {
                outcomes[id] = ["running", "pending"].contains(outcome) ? "undecided" : outcome
            }
            if try row.bool("converted") {
                converted.insert(id)
            } else if try row.bool("expired") {
                expired.insert(id)
            }
        }
        (self.firstSights, self.outcomes, self.converted, self.expired) = (firstSights, outcomes, converted, expired)
    }
}

extension SubscriptionTruth {
    /// Whether its trial had neither ended nor been charged for at an instant.
    fileprivate func trialRuns(at instant: Int64) -> Bool {
        guard let trial = periods.first, instant < trial.expires else { return false }
        return !isFollowed(at: instant)
    }

    /// Whether the store showed a period after the trial at an instant.
    fileprivate func isFollowed(at instant: Int64) -> Bool {
        periods.dropFirst().first.map { $0.booked <= instant } ?? false
    }

    /// Whether its trial is over, and the store has neither renewed it nor given it up, nor tries to charge.
    fileprivate var isUnbooked: Bool { trialOutcome == "undecided" && access == .none && !inBillingRetry }

    fileprivate var trialOutcome: String {
        if log.contains(where: { $0.kind == .converted }) { return "converted" }
        // A refund ends a trial at once, without a lapse.
        return log.contains { $0.kind == .lapsed || $0.kind == .refunded } ? "lost" : "undecided"
    }
}
