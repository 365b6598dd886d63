import Postgres
import SQL
package import Subscriptions

/// A set of invariants that workers verify in turn.
package enum VerifyTurn: String, Sendable, CaseIterable {
    /// Coverage alone, which is quick to verify and which access depends on.
    case coverage
    /// Every invariant.
    case everything

    /// The time between the starts of two turns, in seconds.
    package var everySeconds: Double {
        switch self {
        case .coverage: 600
        case .everything: 86_400
        }
    }

    /// The invariants to verify.
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
    /// Violations found.
    package let violations: Int64
    /// Violations that the worker repaired at once.
    package let repaired: Int64
    /// When the verification ended.
    package let checkedAt: Instant

    /// Violations that were found and not repaired.
    package var left: Int64 { violations - repaired }
}

extension LedgerOperations {
    /// The time without a move after which a worker loses its turn, in seconds.
    static let verifyTurnSeconds = 300.0

    /// Takes the turn for a worker; returns false while another worker has it or before its time.
    package func take(_ turn: VerifyTurn, for worker: WorkerID) async throws -> Bool {
        try await !write(
            Queries.takeVerifyTurn,
            [
                .text(turn.rawValue), .int4(worker.number), .float8(turn.everySeconds),
                .float8(Self.verifyTurnSeconds),
            ]
        ).isEmpty
    }

    /// Records that a worker goes on with its turn, or has finished it; returns false when it lost the turn.
    package func move(_ turn: VerifyTurn, of worker: WorkerID, isOver: Bool = false) async throws -> Bool {
        try await !write(
            Queries.moveVerifyTurn, [.text(turn.rawValue), .int4(worker.number), .bool(isOver)]
        ).isEmpty
    }

    /// Stores the violations and repairs of each verified invariant.
    package func writeInvariants(_ found: [Invariant: (violations: Int, repaired: Int)]) async throws {
        let rows = found.sorted { $0.key.rawValue < $1.key.rawValue }
        _ = try await write(
            Queries.writeInvariants,
            [
                .texts(rows.map(\.key.rawValue)), .int8s(rows.map { Int64($0.value.violations) }),
                .int8s(rows.map { Int64($0.value.repaired) }),
            ])
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
