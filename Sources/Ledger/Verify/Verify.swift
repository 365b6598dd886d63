import Postgres
import SQL

/// The progress of a verification since the last step.
package struct VerifyStep: Sendable {
    /// The invariants that were examined.
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
            try transaction.query(Queries.verifyLimit, [.int4(examination.lookMillisecondsMax)])
            return try examination.look(slice, terms, apps, transaction)
        }
    }

    private func appsByID() async throws -> [Int32: App] {
        Dictionary(try await ledger.apps.all().map { ($0.id, $0) }) { first, _ in first }
    }
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
