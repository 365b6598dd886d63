import Postgres
import SQL

/// The keys after `after` up to `until`, examined in one snapshot.
struct KeySlice: Sendable, Hashable {
    let after: Int64
    let until: Int64

    var parameters: [Parameter] { [.int8(after), .int8(until)] }
}

/// A way to examine the ledger slice by slice, and the invariants it covers.
struct Examination: Sendable {
    let invariants: Set<Invariant>
    /// Returns the end of the next slice.
    let next: SQLFile
    /// The most keys in one slice.
    let keysMax: Int32
    /// The longest time for one statement of a look, in milliseconds; a slice that takes longer is made smaller.
    var lookMillisecondsMax: Int32 = 5_000
    /// Returns the violations in a slice.
    let look: @Sendable (KeySlice, VerifyTerms, [Int32: App], Transaction) throws -> [Violation]

    /// Every examination, the most important first.
    static let all: [Examination] = [
        statement(.coverage, Queries.verifyCoverage, over: Queries.verifyNextSubscriptions) {
            [.float8($0.toleranceSeconds), .bool(false)]
        },
        statement(.purchaseCoverage, Queries.verifyCoverage, over: Queries.verifyNextPurchases) {
            [.float8($0.toleranceSeconds), .bool(true)]
        },
        Examination(
            invariants: [.poller, .nextCheck, .age, .facts], next: Queries.verifyNextSubscriptions, keysMax: 200,
            look: subscriptionViolations),
        statement(.timeline, Queries.verifyTimeline, over: Queries.verifyNextSubscriptions),
        statement(.scheduled, Queries.verifyScheduled, over: Queries.verifyNextReceipts),
        statement(.wanted, Queries.verifyWanted, over: Queries.verifyNextReceipts) { [.float8($0.leaseSeconds)] },
        statement(.leases, Queries.verifyLeases, over: Queries.verifyNextReceipts),
        statement(.ownership, Queries.verifyOwnership, over: Queries.verifyNextOwnerships),
        statement(.entitlements, Queries.verifyEntitlements, over: Queries.verifyNextCustomers, keysMax: 500),
        statement(.deliveries, Queries.verifyPurchaseDeliveries, over: Queries.verifyNextPurchases),
        statement(
            .deliveries, Queries.verifySubscriptionDeliveries, over: Queries.verifyNextSubscriptions, keysMax: 500),
        statement(.orders, Queries.verifyOrders, over: Queries.verifyNextPurchases) { _ in [.bool(true)] },
        statement(.orders, Queries.verifyOrders, over: Queries.verifyNextSubscriptions, keysMax: 500) { _ in
            [.bool(false)]
        },
        statement(.events, Queries.verifyEvents, over: Queries.verifyNextEvents),
        statement(.events, Queries.verifyMovedRefunds, over: Queries.verifyNextSubscriptions),
        statement(.feed, Queries.verifyFeed, over: Queries.verifyNextPositions),
        statement(.webhooks, Queries.verifyWebhooks, over: Queries.verifyNextWebhooks),
        statement(.summaries, Queries.verifySummaries, over: Queries.verifyNextSubscriptions, keysMax: 500),
        // An app's sums cannot be examined in parts: ten million shares take some ten seconds.
        statement(
            .summarySums, Queries.verifySums, over: Queries.verifyNextApps, keysMax: 1, lookMillisecondsMax: 120_000),
    ]

    /// Makes an examination of one invariant, by a statement that returns its violations.
    private static func statement(
        _ invariant: Invariant, _ file: SQLFile, over next: SQLFile, keysMax: Int32 = 2_000,
        lookMillisecondsMax: Int32 = 5_000, _ more: @escaping @Sendable (VerifyTerms) -> [Parameter] = { _ in [] }
    ) -> Examination {
        Examination(
            invariants: [invariant], next: next, keysMax: keysMax, lookMillisecondsMax: lookMillisecondsMax
        ) { slice, terms, _, transaction in
            try transaction.query(file, slice.parameters + more(terms)).map { try Violation(invariant, row: $0) }
        }
    }
}
