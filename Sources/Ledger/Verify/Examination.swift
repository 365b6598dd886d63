import Postgres
import SQL

/// Keys after one up to another: what is looked at in one snapshot.
struct KeySlice: Sendable, Hashable {
    let after: Int64
    let until: Int64

    var parameters: [Parameter] { [.int8(after), .int8(until)] }
}

/// One way of looking at the ledger slice by slice, and which invariants it sees.
struct Examination: Sendable {
    let invariants: Set<Invariant>
    /// Says where the next slice ends.
    let next: SQLFile
    /// Keys in one slice, at most.
    let keysMax: Int32
    /// What a slice violates.
    let look: @Sendable (KeySlice, VerifyTerms, [Int32: App], Transaction) throws -> [Violation]

    /// Every one, the most important first.
    static let all: [Examination] = [
        statement(.coverage, Queries.verifyCoverage, over: Queries.verifyNextSubscriptions) {
            [.float8($0.toleranceSeconds)]
        },
        statement(.purchaseCoverage, Queries.verifyPurchaseCoverage, over: Queries.verifyNextPurchases) {
            [.float8($0.toleranceSeconds)]
        },
        Examination(
            invariants: [.poller, .nextCheck, .age, .facts], next: Queries.verifyNextSubscriptions, keysMax: 200,
            look: subscriptionViolations),
        statement(.timeline, Queries.verifyTimeline, over: Queries.verifyNextSubscriptions),
        statement(.scheduled, Queries.verifyScheduled, over: Queries.verifyNextReceipts),
        statement(.wanted, Queries.verifyWanted, over: Queries.verifyNextReceipts) { [.float8($0.leaseSeconds)] },
        statement(.leases, Queries.verifyLeases, over: Queries.verifyNextReceipts),
        statement(.ownership, Queries.verifyOwnership, over: Queries.verifyNextOwnerships),
        statement(.events, Queries.verifyEvents, over: Queries.verifyNextEvents),
        statement(.feed, Queries.verifyFeed, over: Queries.verifyNextPositions),
        statement(.summaries, Queries.verifySummaries, over: Queries.verifyNextSubscriptions, keysMax: 500),
    ]

    /// An invariant whose statement returns what violates it.
    private static func statement(
        _ invariant: Invariant, _ file: SQLFile, over next: SQLFile, keysMax: Int32 = 2_000,
        _ more: @escaping @Sendable (VerifyTerms) -> [Parameter] = { _ in [] }
    ) -> Examination {
        Examination(invariants: [invariant], next: next, keysMax: keysMax) { slice, terms, _, transaction in
            try transaction.query(file, slice.parameters + more(terms)).map { try Violation(invariant, row: $0) }
        }
    }
}
