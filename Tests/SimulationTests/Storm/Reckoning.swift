import AppStoreSimulator
import Foundation
import Postgres
import Testing

/// What the ledger says in the end and said on the way, beside what the store knows.
struct Reckoning {
    let simulator: Simulator
    let reported: Reported
    let spans: [String: [ReportedSpan]]
    /// Subscriptions that an undated receipt contains, which is a property list and begins with a brace. Its answers show the newest period only, so periods in between are
    /// known later than the ones after them.
    private let undated: Set<String>
    private let feed: [(position: Int64, stream: String, version: Int64, ordinal: Int)]

    init(_ world: PretendWorld) async throws {
        simulator = world.simulator
        reported = try await world.reported()
        let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
        spans = try await ReportedSpan.all(in: database)
        undated = try await Set(
            database.query(
                Statement(
                    name: "undated",
                    sql: """
                        SELECT DISTINCT s.original_transaction_id AS id
                        FROM ledger.subscription s JOIN ledger.receipt_subscription USING (subscription_id)
                        JOIN ledger.receipt r USING (receipt_id)
                        WHERE octet_length(r.data) > 0 AND get_byte(r.data, 0) = ascii('{')
                        """)
            ).map { try $0.text("id") })
        feed = try await database.query(
            Statement(
                name: "feed",
                sql: """
                    SELECT position, original_transaction_id || environment AS stream, version, ordinal
                    FROM perennial.event_log
                    WHERE original_transaction_id IS NOT NULL AND kind NOT LIKE 'purchase%' AND kind NOT LIKE 'ownership%'
                    ORDER BY position
                    """)
        ).map {
            (
                try $0.int8("position"), try $0.text("stream"), try $0.int8("version"), Int(try $0.int2("ordinal"))
            )
        }
        await database.close()
    }

    /// The number of events in the feed.
    var changes: Int { feed.count }

    var summary: String {
        let refusals = spans.values.joined().filter { $0.refusal(before: .max) != nil }.count
        return "\(reported.subscriptions.count) subscriptions, \(changes) events, \(simulator.callCount) calls, "
            + "\(refusals) ends of access looked at"
    }

    /// Accounts whose lives can be compared: a deleted one is asked about no more, and receipts of iOS 6 show the newest
    /// period only.
    var comparable: [(customer: CustomerTruth, truth: SubscriptionTruth)] {
        simulator.truth().filter { !$0.accountDeleted && !$0.hasLegacyReceipts }
            .flatMap { customer in customer.subscriptions.map { (customer, $0) } }
    }

    /// Every subscription stands as the store says.
    func expectAgreement() {
        for (customer, truth) in comparable {
            let id = truth.originalTransactionID
            guard let now = reported.subscriptions[id] else {
                Issue.record("subscription \(id) of \(customer.customer) is unknown")
                continue
            }
            #expect(now.periods == truth.periods.count, "periods of \(id)")
            #expect(truth.agrees(with: now), "access of \(id) of \(customer.customer)")
            #expect(now.willRenew == nil || now.willRenew == truth.autoRenewStatus, "renewal of \(id)")
        }
    }

    /// Each period that came later and each refund has exactly one event, in order; the feed has no gap.
    func expectEveryChangeOnce() {
        for (_, truth) in comparable where !undated.contains(truth.originalTransactionID) {
            let id = truth.originalTransactionID
            let events = reported.events[id] ?? []
            #expect(events.first.map { Reported.beginnings.contains($0.kind) } == true, "beginning of \(id)")
            #expect(events.count { Reported.beginnings.contains($0.kind) } == 1, "beginnings of \(id)")
            let continued = events.filter { Reported.continuations.contains($0.kind) || $0.isReplacement(in: truth) }
            let later = truth.periods.count - (events.first?.periods ?? 1)
            #expect(continued.count == later, "later periods of \(id): \(events.map(\.kind))")
            // A period may be replaced in the second it began: then the next one begins with it.
            #expect(
                Set(continued.map { "\($0.occurredAt) \($0.productID)" }).count == continued.count,
                "a period of \(id) has two events: \(continued) of \(truth.periods)")
            #expect(events.map(\.version) == events.map(\.version).sorted(), "order of \(id)")
        }
        #expect(feed.map(\.position) == feed.map(\.position).sorted())
        for (stream, places) in Dictionary(grouping: feed, by: \.stream) {
            let order = places.map { $0.version * 1_000 + Int64($0.ordinal) }
            #expect(order == order.sorted() && Set(order).count == order.count, "order of \(stream) in the feed")
        }
    }

    /// Wherever the ledger refused, Apple's data as of our last answer refused too.
    ///
    /// The clock of an undated answer is the time of its claim: Apple rendered it at any time until it was recorded, and
    /// without the end of a grace period. Between the two a refund may come and be reversed, so the instant from which it
    /// refused counts, too.
    func expectNobodyRefused() {
        let end = simulator.truth(from: 0, count: 1).first?.now ?? 0
        for (customer, truth) in comparable {
            let id = truth.originalTransactionID
            let isUndated = undated.contains(id)
            for refusal in (spans[id] ?? []).compactMap({ $0.refusal(before: end) }) {
                let rendered = refusal.asOf...max(refusal.asOf, refusal.span.knownFrom)
                let began = [refusal.span.validFrom].filter(rendered.contains)
                let clocks = isUndated ? [rendered.lowerBound] + began + [rendered.upperBound] : [refusal.asOf]
                let truths = clocks.map { clock in
                    simulator.truth(of: customer.customer, at: clock)?.subscriptions
                        .first { $0.originalTransactionID == id }
                }
                let wasEntitled = zip(clocks, truths).allSatisfy { clock, then in
                    then?.entitles(at: refusal.from, asOf: clock, withGrace: !isUndated) ?? false
                }
                #expect(
                    !wasEntitled,
                    "\(id)\(isUndated ? " (undated)" : "") was refused at \(refusal.from): \(refusal.span), \(truths)")
            }
        }
    }
}

extension SubscriptionTruth {
    /// Whether Apple's data as of `clock` entitle at a later instant, a renewal that is expected included.
    fileprivate func entitles(at instant: Int64, asOf clock: Int64, withGrace: Bool) -> Bool {
        let live = periods.filter { $0.cancelled == nil && !$0.upgraded }
        if live.contains(where: { $0.purchase <= instant && instant < $0.expires }) { return true }
        if inBillingRetry { return withGrace && graceUntil.map { instant < $0 } ?? false }
        guard let end = live.map(\.expires).max(), autoRenewStatus, clock < end else { return false }
        return instant >= end
    }
}
