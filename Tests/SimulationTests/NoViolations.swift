import Ledger
import Testing
import Tracking

extension PretendWorld {
    /// What the ledger violates now.
    func violations(_ invariants: Set<Invariant> = Set(Invariant.allCases)) async throws -> [Violation] {
        var terms = try await tracker.ledger.operations.verifyTerms(
            otherwise: VerifyTerms(leaseSeconds: 10, speedup: speedup))
        terms.secondLookSeconds = 0.5
        var found: [Violation] = []
        try await tracker.ledger.operations.verify(invariants, terms) { found += $0.violations }
        return found
    }

    /// Every promise holds, whatever was done to the workers, the database and the App Store before. The age of answers
    /// is left out: the store's clock has stopped and no worker asks any more.
    func expectNoViolations(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let found = try await violations(Set(Invariant.allCases).subtracting([.age]))
        #expect(found.map(\.sentence) == [], sourceLocation: sourceLocation)
    }
}
