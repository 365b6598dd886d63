import Postgres
import SQL
import Subscriptions

/// What workers look through in turn.
package enum VerifyTurn: String, Sendable, CaseIterable {
    /// Coverage alone, which is quick and what access depends on.
    case coverage
    /// Every invariant.
    case everything

    /// How long after one beginning the next one is, in seconds.
    package var everySeconds: Double {
        switch self {
        case .coverage: 600
        case .everything: 86_400
        }
    }

    /// What is looked for.
    package var invariants: Set<Invariant> {
        switch self {
        case .coverage: [.coverage, .purchaseCoverage]
        case .everything: Set(Invariant.allCases)
        }
    }
}

/// What a worker found when it last looked for violations of an invariant.
package struct InvariantStanding: Sendable, Hashable {
    /// The invariant's name; one of a later program is no `Invariant`.
    package let name: String
    /// Violations found.
    package let violations: Int64
    /// Those of them that the worker repaired at once.
    package let repaired: Int64
    /// When that was over.
    package let checkedAt: Instant

    /// Violations that were found and stay.
    package var left: Int64 { violations - repaired }
}

extension SubscriptionLedger {
    /// After how many seconds without a move a worker loses its turn.
    static let verifyTurnSeconds = 300.0

    /// Takes the turn for a worker; false while another one has it or it is not time.
    package func take(_ turn: VerifyTurn, for worker: WorkerID) async throws -> Bool {
        try await !write(
            Queries.takeVerifyTurn,
            [
                .text(turn.rawValue), .int4(worker.number), .float8(turn.everySeconds),
                .float8(Self.verifyTurnSeconds),
            ]
        ).isEmpty
    }

    /// Says that a worker goes on with its turn, or that it is through; false when it lost the turn.
    package func move(_ turn: VerifyTurn, of worker: WorkerID, isOver: Bool = false) async throws -> Bool {
        try await !write(
            Queries.moveVerifyTurn, [.text(turn.rawValue), .int4(worker.number), .bool(isOver)]
        ).isEmpty
    }

    /// Writes down what was found and repaired of each invariant that was looked for.
    package func writeInvariants(_ found: [Invariant: (violations: Int, repaired: Int)]) async throws {
        let rows = found.sorted { $0.key.rawValue < $1.key.rawValue }
        _ = try await write(
            Queries.writeInvariants,
            [
                .texts(rows.map(\.key.rawValue)), .int8s(rows.map { Int64($0.value.violations) }),
                .int8s(rows.map { Int64($0.value.repaired) }),
            ])
    }

    /// What was found when each invariant was looked at last, by name.
    package func invariantStandings() async throws -> [InvariantStanding] {
        try await query(Queries.readInvariants).map { row in
            InvariantStanding(
                name: try row.text("name"), violations: try row.int8("violations"),
                repaired: try row.int8("repaired"), checkedAt: try row.instant("checked_at"))
        }
    }
}
