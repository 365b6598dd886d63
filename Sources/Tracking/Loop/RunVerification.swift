import Foundation
import Ledger
import Logging

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

    /// Verifies the turn's invariants, repairs coverage and records the result. Does nothing while another worker has
    /// the turn, or before it is due. Rests as long as it works.
    func verify(_ turn: VerifyTurn, as worker: WorkerID) async throws {
        guard try await ledger.operations.take(turn, for: worker) else { return }
        let terms = VerifyTerms(leaseSeconds: options.leaseSeconds, speedup: ledger.speedup)
        var found = VerifyTally(turn.invariants)
        var (workedSince, movedAt) = (ContinuousClock.now, ContinuousClock.now)
        do {
            try await ledger.operations.verify(turn.invariants, terms) { step in
                for violation in step.violations {
                    found.add(violation, isRepaired: try await repair(violation, terms, as: worker))
                    if found.count <= Self.violationsLoggedMax { log(violation) }
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
        try await ledger.operations.writeInvariants(found.byInvariant)
        _ = try await ledger.operations.move(turn, of: worker, isOver: true)
    }

    private func repair(_ violation: Violation, _ terms: VerifyTerms, as worker: WorkerID) async throws -> Bool {
        guard violation.invariant.isRepairable else { return false }
        let ledger = ledger.acting(as: .user(NSUserName()))
        let repair = try await ledger.operations.repair(violation, terms, detail: ["worker": "\(worker.number)"])
        guard repair != nil else { return false }
        return try await ledger.operations.remaining(of: [violation], terms).isEmpty
    }

    private func log(_ violation: Violation) {
        logger.error("an invariant is violated; `perennial verify` lists all: \(violation.sentence)")
    }
}

/// The result of a turn.
private struct VerifyTally {
    private(set) var byInvariant: [Invariant: (violations: Int, repaired: Int)]
    private(set) var count = 0

    init(_ invariants: Set<Invariant>) {
        byInvariant = Dictionary(uniqueKeysWithValues: invariants.map { ($0, (0, 0)) })
    }

    mutating func add(_ violation: Violation, isRepaired: Bool) {
        count += 1
        byInvariant[violation.invariant]?.violations += 1
        if isRepaired { byInvariant[violation.invariant]?.repaired += 1 }
    }
}
