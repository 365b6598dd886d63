import Foundation
import Logging
import Postgres
import SQL
package import Subscriptions

/// The progress of a verification since the last step.
package struct VerifyStep: Sendable {
    package let invariants: Set<Invariant>
    /// The most keys that the slice may have; 0 after a second look.
    package let keys: Int64
    /// Violations that a second look confirmed.
    package let violations: [Violation]
}

extension LedgerOperations {
    /// The maximum number of violations that may wait for a second look.
    static let suspectsMax = 1_000

    /// Examines the whole ledger for violations of `invariants`, beside other work.
    ///
    /// Each slice is read in its own read-only snapshot without any lock. A violation counts only when a second look in
    /// a fresh snapshot, a moment later, confirms it, so that work in progress is no violation. `note` is called after
    /// every slice and may pause; an error that it throws ends the verification.
    package func verify(
        _ invariants: Set<Invariant> = Set(Invariant.allCases), _ terms: VerifyTerms,
        note: (VerifyStep) async throws -> Void
    ) async throws {
        for examination in Examination.all where !invariants.isDisjoint(with: examination.invariants) {
            let wanted = examination.invariants.intersection(invariants)
            var keysMax = examination.keysMax
            var (after, isOver) = (Int64(0), false)
            var suspects = UnconfirmedViolations()
            while !isOver {
                if let (slice, seen) = try await lookOn(examination, after: after, keysMax: &keysMax, terms) {
                    suspects.add(seen.filter { wanted.contains($0.invariant) }, in: slice)
                    try await note(VerifyStep(invariants: wanted, keys: slice.until - after, violations: []))
                    after = slice.until
                } else {
                    isOver = true
                }
                if isOver || suspects.count >= Self.suspectsMax {
                    let confirmed = try await lookAgain(examination, at: suspects, terms)
                    suspects = UnconfirmedViolations()
                    try await note(VerifyStep(invariants: wanted, keys: 0, violations: confirmed))
                }
            }
        }
    }

    /// Returns the paid orders that have no delivery yet, because workers go through what a catalog released.
    package func ordersAwaitingRelease() async throws -> [OrdersAwaitingRelease] {
        try await query(Queries.countAwaitingRelease, .int4(OrdersAwaitingRelease.ordersMax)).map { row in
            OrdersAwaitingRelease(
                bundleID: try row.id("bundle_id"), productID: try row.id("product_id"),
                orders: Int(try row.int8("orders")))
        }
    }

    /// Returns the violations that are still there; each is examined alone.
    package func remaining(of violations: [Violation], _ terms: VerifyTerms) async throws -> [Violation] {
        var left: [Violation] = []
        for examination in Examination.all {
            for violation in violations where examination.invariants.contains(violation.invariant) {
                let slice = KeySlice(after: violation.key - 1, until: violation.key)
                let seen = try await look(examination, at: slice, terms, try await appsByID())
                left += seen.filter { $0.identity == violation.identity }
            }
        }
        return left
    }

    /// Returns the next slice with its violations; nil after the last slice.
    private func lookOn(
        _ examination: Examination, after: Int64, keysMax: inout Int32, _ terms: VerifyTerms
    ) async throws -> (slice: KeySlice, seen: [Violation])? {
        while true {
            do {
                let rows = try await query(examination.next, [.int8(after), .int4(keysMax)])
                guard let until = try rows.first?.int8IfPresent("until") else { return nil }
                let slice = KeySlice(after: after, until: until)
                return (slice, try await look(examination, at: slice, terms, try await appsByID()))
            } catch let error as DatabaseError where error.kind == .timedOut && keysMax > 1 {
                keysMax = max(1, keysMax / 4)
            }
        }
    }

    private func lookAgain(
        _ examination: Examination, at suspects: UnconfirmedViolations, _ terms: VerifyTerms
    ) async throws -> [Violation] {
        guard suspects.count > 0 else { return [] }
        try await Task.sleep(for: .seconds(terms.secondLookSeconds))
        let apps = try await appsByID()
        var confirmed: [Violation] = []
        for (slice, identities) in suspects.slices {
            let seen = try await look(examination, at: slice, terms, apps)
            confirmed += seen.filter { identities.contains($0.identity) }
        }
        return confirmed
    }

    private func look(
        _ examination: Examination, at slice: KeySlice, _ terms: VerifyTerms, _ apps: [Int32: App]
    ) async throws -> [Violation] {
        try await database.transaction { transaction in
            try transaction.query(Queries.holdSnapshot)
            try transaction.query(Queries.verifyLimit, .int4(examination.lookMillisecondsMax))
            return try examination.look(slice, terms, apps, transaction)
        }
    }

    func appsByID() async throws -> [Int32: App] {
        Dictionary(try await ledger.apps.all().map { ($0.id, $0) }) { first, _ in first }
    }
}

/// Paid orders of a product without a delivery, because workers have yet to come to what a catalog released: no violation.
package struct OrdersAwaitingRelease: Sendable, Hashable {
    /// The most orders of a product that are counted.
    package static let ordersMax: Int32 = 1_000

    package let bundleID: BundleID
    package let productID: ProductID
    /// How many; `ordersMax` may be more.
    package let orders: Int
}

/// The violations from a first look that a second look has to confirm.
private struct UnconfirmedViolations {
    private(set) var slices: [(slice: KeySlice, identities: Set<Violation.Identity>)] = []
    private(set) var count = 0

    mutating func add(_ violations: [Violation], in slice: KeySlice) {
        guard !violations.isEmpty else { return }
        slices.append((slice, Set(violations.map(\.identity))))
        count += violations.count
    }
}

/// The settings of workers, on which the promises depend beside the ledger itself.
package struct VerifyTerms: Sendable, Hashable {
    /// How long a worker leases a receipt, in seconds.
    package let leaseSeconds: Double
    /// The number by which workers divide the schedule's delays.
    package let speedup: Int
    /// The delay of the second look after the first, in seconds: work in progress is over by then.
    package var secondLookSeconds = 2.0

    package init(leaseSeconds: Double, speedup: Int) {
        self.leaseSeconds = leaseSeconds
        self.speedup = max(1, speedup)
    }

    /// The most by which a receipt may be scheduled late, in seconds: plans that follow each other have different clocks.
    var toleranceSeconds: Double { max(1, 60 / Double(speedup)) }
}

extension LedgerOperations {
    /// Returns the terms of the worker with the newest heartbeat; `otherwise` where no worker reported its own.
    package func verifyTerms(otherwise: VerifyTerms) async throws -> VerifyTerms {
        guard let row = try await query(Queries.readVerifyTerms).first else { return otherwise }
        return VerifyTerms(leaseSeconds: try row.float8("lease_seconds"), speedup: Int(try row.int4("speedup")))
    }
}

/// A set of invariants that workers verify in turn.
package enum VerifyTurn: String, Sendable, CaseIterable {
    /// Coverage alone, which is quick to verify and which access depends on.
    case coverage
    case everything

    /// The time between the starts of two turns, in seconds.
    package var everySeconds: Double {
        switch self {
        case .coverage: 600
        case .everything: 86_400
        }
    }

    package var invariants: Set<Invariant> {
        switch self {
        case .coverage: [.coverage, .purchaseCoverage]
        case .everything: Set(Invariant.allCases)
        }
    }
}

/// The result of a worker's last verification of an invariant.
package struct InvariantStanding: Sendable, Hashable {
    /// The invariant's name; the name of a later program's invariant is no `Invariant`.
    package let name: String
    package let violations: Int64
    /// Violations that the worker repaired at once.
    package let repaired: Int64
    package let checkedAt: Instant

    /// Violations that were found and not repaired.
    package var left: Int64 { violations - repaired }
}

extension LedgerOperations {
    /// The time without a move after which a worker loses its turn, in seconds.
    static let verifyTurnSeconds = 300.0

    /// Takes the turn for a worker; returns false while another worker has it or before its time.
    package func take(_ turn: VerifyTurn, for worker: WorkerID) async throws -> Bool {
        let seconds: [Parameter] = [.float8(turn.everySeconds), .float8(Self.verifyTurnSeconds)]
        return try await !write(Queries.takeVerifyTurn, [.text(turn.rawValue), .int4(worker.number)] + seconds).isEmpty
    }

    /// Records that a worker goes on with its turn, or has finished it; returns false when it lost the turn.
    package func move(_ turn: VerifyTurn, of worker: WorkerID, isOver: Bool = false) async throws -> Bool {
        try await !write(Queries.moveVerifyTurn, .text(turn.rawValue), .int4(worker.number), .bool(isOver)).isEmpty
    }

    /// Stores the violations and repairs of each verified invariant.
    package func writeInvariants(_ found: [Invariant: (violations: Int, repaired: Int)]) async throws {
        let rows = found.sorted { $0.key.rawValue < $1.key.rawValue }
        _ = try await write(
            Queries.writeInvariants, .texts(rows.map(\.key.rawValue)), .int8s(rows.map { Int64($0.value.violations) }),
            .int8s(rows.map { Int64($0.value.repaired) }))
    }

    /// Returns the last result for each invariant, by name.
    package func invariantStandings() async throws -> [InvariantStanding] {
        try await query(Queries.readInvariants).map { row in
            InvariantStanding(
                name: try row.text("name"), violations: try row.int8("violations"),
                repaired: try row.int8("repaired"), checkedAt: try row.instant("checked_at"))
        }
    }
}

extension Worker {
    /// Verifies the invariants when it is this worker's turn: coverage often, everything once a day.
    func runVerification(as worker: WorkerID) async {
        await rest(seconds: tracker.options.verifyRestSeconds)
        while !isStopping() {
            for turn in VerifyTurn.allCases where !isStopping() {
                await tracker.attempt("check the promises") { try await tracker.verify(turn, as: worker) }
            }
            await rest(seconds: tracker.options.verifyRestSeconds)
        }
    }
}

extension Tracker {
    /// The most violations of one turn with a log line of their own; `perennial verify` lists all.
    static let violationsLoggedMax = 10
    /// The interval at which a turn is extended, in seconds.
    static let turnMovesEverySeconds = 10

    /// Verifies a turn that is due and no other worker's, repairs coverage, records it; rests as long as it works.
    func verify(_ turn: VerifyTurn, as worker: WorkerID) async throws {
        guard try await ledger.operations.take(turn, for: worker) else { return }
        let terms = VerifyTerms(leaseSeconds: options.leaseSeconds, speedup: ledger.speedup)
        let nothing = (violations: 0, repaired: 0)
        var found = Dictionary(uniqueKeysWithValues: turn.invariants.map { ($0, nothing) })
        var (workedSince, movedAt) = (ContinuousClock.now, ContinuousClock.now)
        do {
            try await ledger.operations.verify(turn.invariants, terms) { step in
                for violation in step.violations {
                    let isRepaired = try await repair(violation, terms, as: worker)
                    found[violation.invariant]?.violations += 1
                    if isRepaired { found[violation.invariant]?.repaired += 1 }
                    guard found.values.map(\.violations).reduce(0, +) <= Self.violationsLoggedMax else { continue }
                    logger.error("an invariant is violated; `perennial verify` lists all: \(violation.sentence)")
                }
                await rest(seconds: (ContinuousClock.now - workedSince).seconds)
                guard !isStopping() else { throw CancellationError() }
                if ContinuousClock.now - movedAt > .seconds(Self.turnMovesEverySeconds) {
                    guard try await ledger.operations.move(turn, of: worker) else { throw CancellationError() }
                    movedAt = .now
                }
                workedSince = .now
            }
        } catch is CancellationError {
            // The worker stops, or another worker has taken the turn and begins again.
            return
        }
        try await ledger.operations.writeInvariants(found)
        _ = try await ledger.operations.move(turn, of: worker, isOver: true)
    }

    private func repair(_ violation: Violation, _ terms: VerifyTerms, as worker: WorkerID) async throws -> Bool {
        guard violation.invariant.isRepairable else { return false }
        let ledger = ledger.acting(as: .user(NSUserName()))
        let repair = try await ledger.operations.repair(violation, terms, detail: ["worker": "\(worker.number)"])
        guard repair != nil else { return false }
        return try await ledger.operations.remaining(of: [violation], terms).isEmpty
    }

}

/// The result of repairing a subscription or one-time purchase.
package struct CoverageRepair: Sendable, Hashable {
    /// The receipt that was asked about it before; nil for none.
    package let previous: ReceiptID?
    /// The receipt that is asked about it now; nil when none can vouch for it.
    package let receiptID: ReceiptID?
    /// The latest time of the next check, unless the receipt is leased; nil for never.
    package let nextCheckAt: Instant?
}

extension LedgerOperations {
    /// Plans the checks of a violation's subscription or purchase again, in one short transaction with an audit row.
    /// Returns nil when there is nothing to repair. A second repair changes nothing.
    package func repair(
        _ violation: Violation, _ terms: VerifyTerms, detail: [String: String] = [:]
    ) async throws -> CoverageRepair? {
        guard violation.invariant.isRepairable else { return nil }
        let apps = try await appsByID().mapValues { $0.accelerated(by: terms.speedup) }
        let question =
            violation.invariant == .purchaseCoverage
            ? FoundPollers.Question(purchases: [violation.key]) : FoundPollers.Question(subscriptions: [violation.key])
        return try await ledger.changingPollers { transaction in
            var run = try SettlementRun(covering: question, apps: apps, in: transaction)
            // A violation of coverage alone keeps the time of the next check; for any other one Apple is asked at once.
            run.review(atOnce: !VerifyTurn.coverage.invariants.contains(violation.invariant))
            try run.changePolling(in: transaction)
            guard let polling = run.reviewed else { return nil }
            if let poller = polling.poller {
                try transaction.query(
                    Queries.restoreLink, .int8(poller.number), .int8(question.subscriptions.first),
                    .int8(question.purchases.first))
                try transaction.query(Queries.restoreFollowUps, .int8(poller.number))
            }
            let repair = CoverageRepair(
                previous: polling.storedPoller, receiptID: polling.poller, nextCheckAt: polling.nextCheckAt)
            let found = [
                "check": violation.invariant.rawValue, "stream_id": "\(violation.key)",
                "previous_receipt": repair.previous?.description,
            ].compactMapValues(\.self)
            try ledger.audit(
                .coverageRepaired, app: violation.bundleID, receipt: repair.receiptID,
                detail: found.merging(detail) { own, _ in own }, in: transaction)
            return repair
        }
    }
}

extension SettlementRun {
    /// Requests a check of the schedule of everything locked, although no answer came.
    mutating func review(atOnce: Bool) {
        let moment = atOnce ? recordedAt : nil
        for key in subscriptions.keys { subscriptions[key]?.polling.review(by: moment) }
        for key in purchases.keys { purchases[key]?.polling.review(by: moment) }
    }

    /// The polling of the reviewed subscription or purchase; nil when it is gone.
    fileprivate var reviewed: PollingDraft? {
        subscriptions.values.first?.polling ?? purchases.values.first?.polling
    }
}
