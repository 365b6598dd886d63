import Testing
import Tracking

extension LedgerOperations {
    /// What the ledger violates now; `terms` count where no worker reported its own.
    func violations(
        _ invariants: Set<Invariant> = Set(Invariant.allCases), otherwise terms: VerifyTerms
    ) async throws -> [Violation] {
        var terms = try await verifyTerms(otherwise: terms)
        terms.secondLookSeconds = 0.5
        var found: [Violation] = []
        try await verify(invariants, terms) { found += $0.violations }
        return found
    }

    /// Every promise holds, whatever was done to the workers, the database and the App Store before. The age of answers
    /// is left out: the store's clock has stopped and no worker asks any more.
    func expectNoViolations(
        otherwise terms: VerifyTerms, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let found = try await violations(Set(Invariant.allCases).subtracting([.age]), otherwise: terms)
        #expect(found.map(\.sentence) == [], sourceLocation: sourceLocation)
    }
}

extension PretendWorld {
    private var terms: VerifyTerms { VerifyTerms(leaseSeconds: 10, speedup: speedup) }

    /// What the ledger violates now.
    func violations(_ invariants: Set<Invariant>) async throws -> [Violation] {
        try await tracker.ledger.operations.violations(invariants, otherwise: terms)
    }

    /// Every promise holds.
    func expectNoViolations(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await tracker.ledger.operations.expectNoViolations(otherwise: terms, sourceLocation: sourceLocation)
    }
}
