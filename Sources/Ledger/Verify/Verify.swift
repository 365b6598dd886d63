import Postgres
import SQL

/// How far a verification has come since the last step.
package struct VerifyStep: Sendable {
    /// What was looked for.
    package let invariants: Set<Invariant>
    /// Keys of the slice, at most; 0 after a second look.
    package let keys: Int64
    /// Violations that a second look saw too.
    package let violations: [Violation]
}

extension SubscriptionLedger {
    /// How long one statement of a look may take, in milliseconds; a slice that takes longer is made smaller.
    static let lookMillisecondsMax: Int32 = 5_000
    /// Violations that wait for a second look, at most.
    static let suspectsMax = 1_000

    /// Looks through the whole ledger for violations of `invariants`, beside everything else.
    ///
    /// Each slice is read in a read-only snapshot of its own without any lock. What is seen is looked at again in a fresh
    /// snapshot a moment later, so that work under way is no violation. `note` is called after every slice and may rest;
    /// what it throws ends the verification.
    package func verify(
        _ invariants: Set<Invariant> = Set(Invariant.allCases), _ terms: VerifyTerms,
        note: (VerifyStep) async throws -> Void
    ) async throws {
        for examination in Examination.all where !invariants.isDisjoint(with: examination.invariants) {
            let wanted = examination.invariants.intersection(invariants)
            var keysMax = examination.keysMax
            var (after, isOver) = (Int64(0), false)
            var suspects = Suspects()
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
                    suspects = Suspects()
                    try await note(VerifyStep(invariants: wanted, keys: 0, violations: confirmed))
                }
            }
        }
    }

    /// Whether violations are still there, each looked at alone; those that are.
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

    /// The next slice with what it violates; nil behind the last one.
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
        _ examination: Examination, at suspects: Suspects, _ terms: VerifyTerms
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
            try transaction.query(Queries.verifyLimit, [.int4(Self.lookMillisecondsMax)])
            return try examination.look(slice, terms, apps, transaction)
        }
    }

    private func appsByID() async throws -> [Int32: App] {
        Dictionary(try await apps().map { ($0.id, $0) }) { first, _ in first }
    }
}

/// What one look saw and another one has to see again.
private struct Suspects {
    private(set) var slices: [(slice: KeySlice, identities: Set<Violation.Identity>)] = []
    private(set) var count = 0

    mutating func add(_ violations: [Violation], in slice: KeySlice) {
        guard !violations.isEmpty else { return }
        slices.append((slice, Set(violations.map(\.identity))))
        count += violations.count
    }
}
