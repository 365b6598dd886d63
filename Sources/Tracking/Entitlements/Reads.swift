import Postgres
import SQL
import Synchronization

/// The database that lookups read from: a hot standby while it answers and follows closely, else the primary. Without a
/// primary, a standby that is behind still answers, and `checked_at` shows how old the answer is.
final class Reads: Sendable {
    /// The longest lag of a standby before the primary is asked instead.
    static let behindSecondsMax = 60.0
    /// The time between two checks, by one caller, of the standby's lag and of whether the primary is back.
    static let lookSeconds = 5

    private struct Memory {
        var standby: StandbyStanding
        var isPrimaryAway = false
        var nextLook: ContinuousClock.Instant?
    }

    private let primary: Database
    private let standby: Database?
    private let memory: Mutex<Memory>

    init(primary: Database, standby: Database?) {
        self.primary = primary
        self.standby = standby
        memory = Mutex(Memory(standby: standby == nil ? .none : .following))
    }

    /// Runs a read-only statement, with `isShared` for equal reads of others too. Throws the last database's error.
    nonisolated(nonsending) func query(
        _ file: SQLFile, _ parameters: [Parameter] = [], isShared: Bool = false
    ) async throws(DatabaseError) -> [Row] {
        let statement = Statement(file)
        guard let standby else { return try await primary.query(statement, parameters, isShared: isShared) }
        if isTimeToLook(at: ContinuousClock.now) { await look(at: standby) }
        let order = memory.withLock { $0.standby.order(isPrimaryAway: $0.isPrimaryAway) }
        var failure = DatabaseError(.cannotConnect, "No database was asked.")
        for source in order {
            do throws(DatabaseError) {
                let database = source == .primary ? primary : standby
                return try await database.query(statement, parameters, isShared: isShared)
            } catch {
                guard error.isWorthAnother(than: source) else { throw error }
                note(error, of: source)
                failure = error
            }
        }
        throw failure
    }

    /// Whether a read may miss what was committed just now.
    var mayLag: Bool { standby != nil }

    /// Returns the state of the standby; checks now, even right after another check.
    func look() async -> StandbyStanding {
        if let standby { await look(at: standby) }
        return memory.withLock { $0.standby }
    }

    /// Whether this caller checks, while the others go on with the known state.
    private func isTimeToLook(at now: ContinuousClock.Instant) -> Bool {
        memory.withLock { memory in
            if let next = memory.nextLook, now < next { return false }
            memory.nextLook = now + .seconds(Self.lookSeconds)
            return true
        }
    }

    private func look(at standby: Database) async {
        let found: StandbyStanding
        do throws(DatabaseError) {
            let seconds = try await standby.query(Statement(Queries.standbyLag)).first?.float8IfPresent("seconds")
            found = seconds.map { $0 <= Self.behindSecondsMax ? .following : .behind } ?? .behind
        } catch { found = .away }
        memory.withLock { memory in
            memory.standby = found
            memory.isPrimaryAway = false
        }
    }

    private func note(_ error: DatabaseError, of source: ReadSource) {
        guard error.isLoss else { return }
        memory.withLock { memory in
            switch source {
            case .primary: memory.isPrimaryAway = true
            case .standby: memory.standby = .away
            }
        }
    }
}

/// A database that lookups may read from.
enum ReadSource: Sendable {
    case primary
    case standby
}

/// The state of a hot standby.
package enum StandbyStanding: String, Sendable, CaseIterable {
    /// There is none.
    case none
    /// It answers and hardly lags.
    case following
    /// It answers, but lags too far to be asked before the primary.
    case behind
    /// It does not answer.
    case away

    /// Whether it answers at all.
    package var canAnswer: Bool {
        switch self {
        case .following, .behind: true
        case .none, .away: false
        }
    }

    /// Returns the databases to ask, in order; the next one only when the one before is away.
    func order(isPrimaryAway: Bool) -> [ReadSource] {
        switch self {
        case .none, .away: [.primary]
        case .following: [.standby, .primary]
        case .behind: isPrimaryAway ? [.standby] : [.primary, .standby]
        }
    }
}

extension DatabaseError {
    /// Whether another server may answer better: this one is away, replays (class 40) or lacks a migration (class 42).
    fileprivate func isWorthAnother(than source: ReadSource) -> Bool {
        switch source {
        case .primary: isLoss
        case .standby: isLoss || ["40", "42"].contains(sqlState?.prefix(2) ?? "")
        }
    }
}
