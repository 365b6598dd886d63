import AppStoreSimulator
import Foundation
import Postgres
import Subscriptions
import Testing
import Tracking

/// Customers with terms of payments, groups and seats, asked about over HTTP, in a real database.
@Suite("Terms, seats and money under the Server API are as in the simulator's truth")
struct SaleAgreementTests {
    @Test("Two months: access, events, both wills, payments, seats and what each customer paid")
    func agreement() async throws {
        var options = SimulatorOptions(seed: 20_261_130)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (60, 0, 6)
        (options.traits.commitments, options.traits.groups, options.traits.seats) = (0.4, 0.4, 0.4)
        (options.traits.legacyReceipt, options.chances.accountDeletions) = (0, 0)
        try await PretendWorld.with(options, importing: .signedTransactions) { world in
            try await world.tracker.ledger.apps.change(world.bundleID, .verifying(by: .serverAPI))
            let known = try Set(world.simulator.signedTransactions().map(\.customer))
            try await world.work(seconds: 14)
            world.clock.stop()
            // One sweep reads everything.
            try await world.run("UPDATE ledger.receipt SET history_revision = NULL")
            try await world.checkEverything()
            try await AgreementTests.expectAgreement(in: world, of: known, renewalsMin: 40)
            try await expectSales(in: world, of: known)
            #expect(try await world.rebuild(correcting: false).differences == [])
            // Nothing misses what a pruning of long ago removed.
            try await world.run(
                """
                SELECT ledger.add_observation_month(now() - interval '5 months');
                UPDATE ledger.observation SET recorded_at = recorded_at - interval '5 months';
                """)
            let prune = try PerennialProcess(
                ["prune", "--keep-months", "2"], in: world, further: ["PERENNIAL_POLL_SPEEDUP": "\(world.speedup)"])
            #expect(await prune.end() == 0, "\(prune.said)")
            try prune.forget()
            #expect(try await world.rebuild(correcting: false).differences == [])
            try await expectSales(in: world, of: known)
            try await world.expectNoViolations()
        }
    }

    @Test("A year of the calendar: MRR of today, renewals, and the day on which each customer churned")
    func figures() async throws {
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        let isLong = ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil
        var options = SimulatorOptions(seed: 20_261_131)
        options = options.calendarApp(options.bundleID, customers: isLong ? 2_000 : 120, at: now)
        options.monthSeconds = 30 * 86_400
        (options.traits.commitments, options.traits.groups, options.traits.seats) = (0.5, 0.3, 0.3)
        (options.traits.legacyReceipt, options.traits.quirk, options.traits.ownBesideShared) = (0, 0, 0)
        (options.chances.accountDeletions, options.chances.extensions) = (0, 0)
        try await PretendWorld.with(options, importing: .signedTransactions) { world in
            try await world.tracker.ledger.apps.change(world.bundleID, .verifying(by: .serverAPI))
            world.clock.stop()
            try await world.checkEverything()
            let known = try Set(world.simulator.signedTransactions().map(\.customer))
            let figures = try await self.figures(in: world)
            var counts = (paying: 0, terms: 0, owed: 0, renewals: 0, churned: 0)
            for customer in world.simulator.truth() where known.contains(customer.customer) {
                for truth in customer.subscriptions {
                    let id = truth.originalTransactionID
                    // Between an end and a late charge access goes on, and nothing is paid.
                    if truth.access == .none, truth.appleStatus == .active { continue }
                    var told = figures[id] ?? Figures()
                    // The truth knows no end of a grace period that passed.
                    if truth.graceUntil != nil { told.churnedOn = nil }
                    let expected = Figures(truth, at: customer.now)
                    #expect(told == expected, "\(id), \(truth.appleStatus)")
                    counts.paying += expected.monthly > 0 ? 1 : 0
                    counts.terms += expected.monthly > 0 && truth.term != nil ? 1 : 0
                    counts.owed += truth.periods.count { ($0.payment ?? 0) > 1 }
                    counts.renewals += expected.renewed
                    counts.churned += expected.churnedOn == nil ? 0 : 1
                }
            }
            #expect(
                counts.paying > 30 && counts.terms > 10 && counts.owed > 50 && counts.renewals > 30
                    && counts.churned > 10, "\(counts)")
        }
    }

    /// What reports say of one subscription.
    fileprivate struct Figures: Equatable {
        /// In thousandths of the currency; -1 if it pays at an unknown price.
        var monthly: Int64 = 0
        /// Periods that came to an end at which they could renew, and how many renewed without a gap.
        var due = 0
        var renewed = 0
        /// The day since which it pays nothing; nil if it pays, or never did at a day's end.
        var churnedOn: Int64?
    }

    private func figures(in world: PretendWorld) async throws -> [String: Figures] {
        let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
        let rows = try await database.query(
            Statement(
                name: "figures_told",
                sql: """
                    SELECT k.original_transaction_id, COALESCE(pays.monthly, 0)::bigint AS monthly,
                           COALESCE(ended.due, 0)::bigint AS due, COALESCE(ended.renewed, 0)::bigint AS renewed,
                           CASE WHEN pays.monthly IS NULL THEN left_on.day END AS churned_on
                    FROM perennial.subscription_key k
                    LEFT JOIN (
                        SELECT stream_id, sum(COALESCE(monthly_milliunits, -1)) AS monthly
                        FROM perennial.paying_as_known('infinity') WHERE paying_from <= now() AND now() < paying_until
                        GROUP BY 1) pays USING (stream_id)
                    LEFT JOIN (
                        SELECT stream_id, count(*) AS due,
                               count(*) FILTER (WHERE next_is_paid AND next_purchased_at - expires_at <= interval '1 hour')
                                   AS renewed
                        FROM perennial.renewals_as_known('infinity') WHERE expires_at <= now() GROUP BY 1) ended
                        USING (stream_id)
                    LEFT JOIN (
                        SELECT stream_id, max(day - date '1970-01-01')::bigint AS day
                        FROM perennial.mrr_movement_as_known('infinity', 'UTC') WHERE kind = 'churn' GROUP BY 1) left_on
                        USING (stream_id)
                    """))
        await database.close()
        return try rows.reduce(into: [:]) { told, row in
            told[try row.text("original_transaction_id")] = Figures(
                monthly: try row.int8("monthly"), due: Int(try row.int8("due")),
                renewed: Int(try row.int8("renewed")), churnedOn: try row.int8IfPresent("churned_on"))
        }
    }

    private struct Stated {
        let row: Row
        func flag(_ name: String) throws -> Bool? { try row.boolIfPresent(name) }
        func number(_ name: String) throws -> Int? { try row.int8IfPresent(name).map { Int($0) } }
    }

    private func expectSales(in world: PretendWorld, of known: Set<String>) async throws {
        let stated = try await stated(in: world)
        var counts = (terms: 0, groups: 0, members: 0, payers: 0)
        for customer in world.simulator.truth() where known.contains(customer.customer) {
            for truth in customer.subscriptions {
                let id = truth.originalTransactionID
                let now = try #require(stated[id], "\(id) is unknown")
                #expect(try now.flag("next_payment") == truth.autoRenewStatus, "next payment of \(id)")
                #expect(
                    try now.flag("will_renew") == (truth.term?.autoRenewStatus ?? truth.autoRenewStatus),
                    "will of \(id)")
                if let term = truth.term {
                    counts.terms += 1
                    #expect(try now.number("payment_number") == term.payment, "payment of \(id)")
                    #expect(try now.number("ends_at_ms").map { Int64($0) } == term.ends, "end of the term of \(id)")
                }
                guard truth.ownership == "PURCHASED" else {
                    counts.members += 1
                    #expect(try now.number("charges") == 0 && now.number("seats") == nil, "money of \(id)")
                    continue
                }
                if let last = truth.periods.last, last.seats != nil {
                    counts.groups += 1
                    let left = truth.periods.filter { $0.expires == last.expires && $0.cancelled == nil }
                        .reduce(0) { $0 + ($1.seats ?? 0) - $1.revokedSeats }
                    #expect(try now.number("seats") ?? 0 == left, "seats of \(id)")
                }
                counts.payers += 1
                let paid = truth.periods.reduce(Int64(0)) { $0 + $1.paid - $1.returned }
                let net = Int64(try now.number("net") ?? 0)
                // A share is rounded here and cut there.
                #expect(abs(net - paid) <= Int64(truth.periods.count), "\(id) paid \(paid), and the ledger says \(net)")
            }
        }
        #expect(counts.terms > 5 && counts.groups > 5 && counts.members > 3 && counts.payers > 20, "\(counts)")
    }

    private func stated(in world: PretendWorld) async throws -> [String: Stated] {
        let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
        let rows = try await database.query(
            Statement(
                name: "sales_told",
                sql: """
                    SELECT n.original_transaction_id, n.will_renew, n.next_payment, n.seats::bigint,
                           -- As stored: months of seconds pass while this is read, and then no term runs.
                           (s.sale ->> 'payment_number')::bigint AS payment_number,
                           (s.sale ->> 'term_ends_at_ms')::bigint AS ends_at_ms,
                           count(r.kind) AS charges, sum(r.amount_milliunits)::bigint AS net
                    FROM perennial.subscription_now n
                    JOIN ledger.subscription s USING (original_transaction_id)
                    LEFT JOIN perennial.revenue_event r USING (original_transaction_id)
                    GROUP BY 1, 2, 3, 4, 5, 6
                    """))
        await database.close()
        return try rows.reduce(into: [:]) { $0[try $1.text("original_transaction_id")] = Stated(row: $1) }
    }
}

extension SaleAgreementTests.Figures {
    fileprivate init(_ truth: SubscriptionTruth, at now: Int64) {
        guard truth.ownership == "PURCHASED" else { return }
        let paid = truth.periods.filter { !$0.isTrial }
        let running = paid.filter { $0.cancelled == nil && $0.purchase <= now && now < $0.expires }
        let end = running.map(\.expires).max() ?? paid.map(\.expires).max()
        if truth.access != .none {
            let head = paid.filter { $0.cancelled == nil && $0.expires == end }
            let amount = head.reduce(Int64(0)) {
                $0
                    + Int64(
                        (Double($1.paid) * Double(($1.seats ?? 1) - $1.revokedSeats) / Double($1.seats ?? 1)).rounded())
            }
            monthly = head.first.map { Int64((Double(amount) / $0.months).rounded()) } ?? 0
        }
        let chain = truth.periods.filter { !$0.isAddition }.sorted { $0.purchase < $1.purchase }
        for (index, period) in chain.enumerated() {
            guard !period.isTrial, period.expires <= now, !period.upgraded, period.cancelled ?? .max >= period.expires,
                period.payment ?? 12 >= 12
            else { continue }
            due += 1
            guard chain.indices.contains(index + 1) else { continue }
            let next = chain[index + 1]
            renewed += !next.isTrial && next.purchase - period.expires <= 3_600_000 ? 1 : 0
        }
        let last = paid.map { min($0.cancelled ?? .max, $0.expires) }.max()
        // A failed payment of a term is owed while it is tried.
        let isOwed = truth.appleStatus == .billingRetry && truth.periods.last?.payment != nil
        if truth.access == .none, truth.graceUntil == nil, !isOwed, let last { churnedOn = last / 86_400_000 }
    }
}

extension PeriodTruth {
    /// Months as reports count them without a catalog.
    fileprivate var months: Double {
        let days = Double(expires - purchase) / 86_400_000
        if plan == .monthly { return 1 }
        return days >= 25 ? (days * 12 / 365.25).rounded() : (days / 7).rounded() * 7 * 12 / 365.25
    }
}
