import Foundation
import SeededRandom
import Testing

@testable import AppStore
@testable import AppStoreSimulator
@testable import Subscriptions
@testable import Tracking

/// Random lives with terms of payments, groups and seats at the speed of the calendar, read from their signed payloads and
/// reconciled without a database. After each look the state says what the simulator's truth says.
@Suite("Random lives with terms and seats agree with the simulator's truth") struct RandomSaleTests {
    private static let epoch: Int64 = 1_767_225_600_000

    @Test("Access, both wills, payments, seats and events are right after every look")
    func lives() throws {
        var options = SimulatorOptions(seed: 20_261_126)
        print("seed \(options.seed)")
        let isLong = ProcessInfo.processInfo.environment["PERENNIAL_TEST_ALL"] != nil
        (options.customers, options.sandboxCustomers) = (isLong ? 2_000 : 160, 0)
        options.monthSeconds = SimulatorOptions.calendarMonthSeconds
        options.traits = .none
        (options.traits.commitments, options.traits.groups, options.traits.seats) = (0.5, 0.6, 0.5)
        (options.traits.grace, options.traits.namesPlan) = (0.5, 0.5)
        (options.chances.accountDeletions, options.chances.cancels) = (0, 0.1)
        let world = World(options: options, epoch: StoreTime(milliseconds: Self.epoch))
        var seen = Seen()
        for index in 0..<options.customers {
            var account = world.population.account(index)
            var random = Seeded(seed: options.seed &+ UInt64(index))
            var state: SubscriptionState?
            var events: [Event] = []
            var first = 0
            var now = max(Self.epoch, account.start.milliseconds + 1_000)
            for _ in 0..<12 {
                account.advance(to: StoreTime(milliseconds: now))
                let life = try #require(account.lives.first)
                // What Apple took back counts on the second answer, ten minutes later at the earliest.
                for later in [Int64(0), 660_000] where later == 0 || state?.retractions.isEmpty == false {
                    let reconciled = reconcile(
                        state, with: try evidence(of: life, account, in: world, at: now + later),
                        policy: .standard(for: .production))
                    if state == nil { first = reconciled.state.periods }
                    state = reconciled.state
                    events += reconciled.events
                }
                try compare(
                    try #require(state), with: life, at: account.now, "seed \(options.seed), customer \(index)", &seen)
                now += Int64.random(in: 0..<40 * 86_400, using: &random) * 1_000 + 86_400_000
            }
            let life = try #require(account.lives.first)
            let later = life.periods.dropFirst(first).filter { !($0.seats?.isAddition ?? false) }
            let replacing = later.count { [.upgraded, .crossgraded].contains($0.kind) }
            let kinds = events.map(\.kind)
            let continued = kinds.count {
                [.trialConverted, .subscriptionRenewed, .subscriptionRecovered, .subscriptionReactivated].contains($0)
            }
            try #require(continued == later.count - replacing, "customer \(index): \(kinds)")
        }
        #expect(seen.terms > 100 && seen.cancelledTerms > 10 && seen.groups > 50 && seen.members > 20, "\(seen)")
    }

    /// How much the lives proved.
    private struct Seen {
        var terms = 0
        var cancelledTerms = 0
        var groups = 0
        var members = 0
    }

    private func compare(
        _ state: SubscriptionState, with life: Life, at now: StoreTime, _ whose: Comment, _ seen: inout Seen
    ) throws {
        let span = try #require(state.timeline.span(at: state.asOf), whose)
        let status = life.status(at: now)
        // Between the end of a period and a late charge Apple says active although nothing is paid.
        if status != .active || life.isPaid(at: now) {
            let hasAccess = life.isPaid(at: now) || status == .gracePeriod
            try #require(span.entitled == hasAccess, "\(whose): \(span.state) at \(state.asOf.iso8601), \(status)")
        }
        try #require(state.nextPayment == life.nextPaymentIsOn, whose)
        try #require(state.willRenew == life.renewalIsOn, whose)
        if let payment = life.runningPayment {
            try #require(state.sale.plan == "monthly" && state.sale.paymentNumber == payment.number, whose)
            try #require(state.sale.termEndsAt?.milliseconds == payment.termEnds.milliseconds, whose)
            seen.terms += 1
            seen.cancelledTerms += life.renewalIsOn ? 0 : 1
        }
        if life.script.isMember {
            try #require(state.sale.seats == nil && span.flags.contains(.assigned), whose)
            seen.members += 1
        } else if let head = life.periods.last, head.seats != nil {
            let left = life.periods.filter { $0.expires == head.expires && $0.cancellation == nil }
                .reduce(0) { $0 + ($1.seats?.left ?? 0) }
            try #require(state.sale.seats ?? 0 == left, whose)
            seen.groups += 1
        }
        let money = life.periods.map { period in period.cancellation }.count { $0 != nil }
        try #require(state.facts.periods.count { $0.cancelledAt != nil } == money, whose)
    }

    /// What the statuses and the whole history state of a life.
    private func evidence(
        of life: Life, _ account: Account, in world: World, at now: Int64
    ) throws -> SubscriptionEvidence {
        let signedAt = StoreTime(milliseconds: now)
        func payload(_ write: (inout JSONWriter) -> Void) -> [UInt8] {
            var json = JSONWriter()
            write(&json)
            return json.bytes
        }
        let texts = life.periods.map { period in
            payload {
                AppStoreSimulator.SignedTransaction(period, of: life, account, in: world)
                    .write(to: &$0, signedAt: signedAt, bundleID: world.bundleID)
            }
        }
        let transactions = texts.enumerated().compactMap { place, text in
            AppStore.SignedTransaction(payload: text, path: "history[0].signedTransactions[\(place)]")
        }
        try #require(transactions.count == texts.count)
        let renewal = AppStoreSimulator.SignedRenewal(life: life, account: account, world: world)
        let read = AppStore.SignedRenewal(
            payload: payload { renewal.write(to: &$0, signedAt: signedAt, bundleID: world.bundleID) },
            path: "statuses.data[0].lastTransactions[0].signedRenewalInfo")
        let said = try #require(read)
        return SubscriptionEvidence(
            originalTransactionID: OriginalTransactionID(life.ids.originalTransactionID),
            asOf: Instant(milliseconds: now), transactions: transactions.map(\.row),
            renewals: [
                said.row(
                    status: Subscriptions.AppleStatus(rawValue: life.status(at: signedAt).rawValue),
                    beside: transactions.last)
            ])
    }
}
