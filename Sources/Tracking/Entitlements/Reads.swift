import Postgres
import SQL
import Synchronization

/// The database that lookups read from: a hot standby while it answers and follows closely, else the primary. Without a
/// primary, a standby that is behind still answers, and `checked_at` shows how old the answer is.
final class Reads: Sendable {
    /// The longest lag of a standby before the primary is asked instead.
    static let behindSecondsMax = 60.0
    /// How long a read waits for the standby before the primary is asked instead, and a check of both servers. A probe of
    /// `/readyz`, which checks, usually waits for a second.
    static let patience = Duration.milliseconds(750)
    /// How long a read waits for the primary before a standby that is behind, or a promoted one, may be asked instead.
    static let patienceWithPrimary = Duration.seconds(2)
    /// How long a read waits at the most, all servers together.
    static let limit = Duration.seconds(10)
    /// The time between two checks of the standby's lag and of whether the primary is back. Where no server makes them, one
    /// of the reads does.
    static let lookSeconds = 5

    private struct Memory {
        var standby: StandbyStanding
        /// Why it is so, as the last check or read found it; nil before the first one.
        var reason: String?
        /// Whether the standby is away only in that it gave no answer in time: without a primary it is asked all the same.
        var isSilent = false
        var isPrimaryAway = false
        /// The primary's feed, as it was read last.
        var feed: String?
        var nextLook: ContinuousClock.Instant?

        var order: [ReadSource] { (isSilent ? .behind : standby).order(isPrimaryAway: isPrimaryAway) }
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
    ///
    /// A server that gives no answer in time counts as away, so that one that hangs holds no lookup. With `mayTakeLong` a
    /// read waits as long as its statement may run.
    nonisolated(nonsending) func query(
        _ file: SQLFile, _ parameters: [Parameter] = [], isShared: Bool = false, mayTakeLong: Bool = false
    ) async throws(DatabaseError) -> [Row] {
        let statement = Statement(file)
        guard let standby else {
            return try await primary.query(
                statement, parameters, isShared: isShared, within: mayTakeLong ? nil : Self.limit)
        }
        if isTimeToLook(at: ContinuousClock.now) { await look(at: standby) }
        let end = ContinuousClock.now + Self.limit
        nonisolated(nonsending) func ask(
            _ source: ReadSource, atMost patience: Duration = Self.limit
        ) async throws(DatabaseError) -> [Row] {
            try await (source == .primary ? primary : standby).query(
                statement, parameters, isShared: isShared,
                within: mayTakeLong ? nil : max(.zero, min(patience, end - ContinuousClock.now)))
        }
        let (order, isPrimaryAway, isForeign) = memory.withLock { ($0.order, $0.isPrimaryAway, $0.standby == .foreign) }
        var failure = DatabaseError(.cannotConnect, "No database was asked.")
        var wasStandbySilent = false
        for source in order where mayTakeLong || ContinuousClock.now < end {
            let isLast = source == order.last && !isForeign || source == .standby && isPrimaryAway
            let patience = isLast ? Self.limit : source == .primary ? Self.patienceWithPrimary : Self.patience
            do throws(DatabaseError) {
                return try await ask(source, atMost: patience)
            } catch {
                guard error.isWorthAnother(than: source, isBounded: !mayTakeLong) else { throw error }
                note(error, of: source)
                failure = error
                if source == .standby, !isLast { wasStandbySilent = error.isSilence }
            }
        }
        // The primary is away, and the standby may only be slow.
        if wasStandbySilent, ContinuousClock.now < end { return try await ask(.standby) }
        // A promoted standby may answer while the primary is away, which a check of both shows.
        if isForeign, ContinuousClock.now < end {
            await look(at: standby)
            return try await ask(memory.withLock { $0.order[0] })
        }
        throw failure
    }

    /// Reads from the primary what the standby may not have yet.
    nonisolated(nonsending) func queryPrimary(
        _ file: SQLFile, _ parameters: [Parameter] = []
    ) async throws(DatabaseError) -> [Row] {
        try await primary.query(Statement(file), parameters, within: Self.limit)
    }

    /// Whether a read may miss what was committed just now.
    var mayLag: Bool { standby != nil }

    /// Returns the state of the standby; checks now, even right after another check.
    func look() async -> StandbyStanding {
        if let standby {
            memory.withLock { $0.nextLook = ContinuousClock.now + .seconds(2 * Self.lookSeconds) }
            await look(at: standby)
        }
        return memory.withLock { $0.standby }
    }

    /// The state of the standby as it was found last, and why; nil where there is none or it was not asked yet.
    var known: (standing: StandbyStanding, reason: String)? {
        memory.withLock { memory in memory.reason.map { (memory.standby, $0) } }
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
        async let askedPrimary = try? Place(of: primary)
        let asked: Result<Place, DatabaseError>
        do throws(DatabaseError) {
            asked = .success(try await Place(of: standby))
        } catch {
            asked = .failure(error)
        }
        let ours = await askedPrimary
        memory.withLock { memory in
            switch asked {
            case .success(let place):
                (memory.standby, memory.reason) = standing(of: place, beside: ours, memory)
                memory.isSilent = false
            case .failure(let error):
                guard error.kind != .cancelled else { return }
                (memory.standby, memory.reason, memory.isSilent) = (.away, error.message, error.isSilence)
            }
            if let ours { (memory.isPrimaryAway, memory.feed) = (false, ours.feed) }
        }
    }

    /// Returns the state of a server that answered, beside the primary's answer if there was one, and why it is so.
    ///
    /// Another installation's database and a standby that was promoted would answer as of another past. A promoted one may
    /// answer while the primary is away; a primary that is only slow to answer a check changes nothing.
    private func standing(of place: Place, beside ours: Place?, _ memory: Memory) -> (StandbyStanding, String) {
        if let feed = ours?.feed ?? memory.feed, feed != place.feed {
            return (.foreign, "the feed of its ledger is \(place.feed)")
        }
        let isOther =
            ours.map { $0.startedAt != place.startedAt } ?? (memory.standby == .foreign && !memory.isPrimaryAway)
        if isOther, place.startedAt != nil { return (.foreign, "it is no standby and not the primary") }
        guard let lag = place.secondsBehind else { return (.behind, "it has replayed nothing yet") }
        return lag <= Self.behindSecondsMax ? (.following, "") : (.behind, "it is \(Int(lag)) seconds behind")
    }

    private func note(_ error: DatabaseError, of source: ReadSource) {
        guard error.isLoss || error.isSilence else { return }
        memory.withLock { memory in
            switch source {
            case .primary: memory.isPrimaryAway = true
            case .standby: (memory.standby, memory.reason, memory.isSilent) = (.away, error.message, error.isSilence)
            }
        }
    }
}

extension Tracker {
    /// Checks the standby every few seconds, until shutdown, and logs its states.
    package func watchStandby() async {
        while ledger.reads.mayLag, !isStopping() {
            _ = await ledger.standby()
            seeStandby()
            await rest(seconds: Double(Reads.lookSeconds))
        }
    }

    /// Logs a change of the standby's state since the last time.
    func seeStandby() {
        guard let (standing, reason) = ledger.reads.known else { return }
        let troubles: [StandbyStanding] = [.behind, .away, .foreign]
        conditions.clear(troubles.filter { $0 != standing }.map(Condition.standby))
        if troubles.contains(standing) { conditions.raise(.standby(standing), by: reason) }
    }
}

/// Where a ledger is.
private struct Place {
    /// The identity of its feed, which another installation does not have.
    let feed: String
    /// When the server started; nil for a standby.
    let startedAt: Int64?
    /// Nil where that is not known.
    let secondsBehind: Double?

    init(of database: Database) async throws(DatabaseError) {
        guard let row = try await database.query(Statement(Queries.standbyPlace), within: Reads.patience).first else {
            throw DatabaseError(.decoding, "The server has no feed.")
        }
        feed = try row.text("feed")
        startedAt = try row.int8IfPresent("started_at")
        secondsBehind = try row.float8IfPresent("seconds")
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
    /// It does not answer, or not to our account.
    case away
    /// It answers, and is no standby of the primary: another installation's database, or it was promoted.
    case foreign

    /// Whether it answers at all.
    package var canAnswer: Bool {
        switch self {
        case .following, .behind: true
        case .none, .away, .foreign: false
        }
    }

    /// Returns the databases to ask, in order; the next one only when the one before is away.
    func order(isPrimaryAway: Bool) -> [ReadSource] {
        switch self {
        case .none, .away, .foreign: [.primary]
        case .following: [.standby, .primary]
        case .behind: isPrimaryAway ? [.standby] : [.primary, .standby]
        }
    }
}

extension DatabaseError {
    /// Whether another server may answer better: this one is away or silent, replays (class 40) or lacks a migration
    /// (class 42). A read that was not bounded may have reached the time-out of statements, as it would elsewhere.
    fileprivate func isWorthAnother(than source: ReadSource, isBounded: Bool) -> Bool {
        if isLoss || isBounded && isSilence { return true }
        return source == .standby && ["40", "42"].contains(sqlState?.prefix(2) ?? "")
    }

    /// Whether the server gave no answer in time, or so many callers wait for one that no more may.
    fileprivate var isSilence: Bool { kind == .timedOut || kind == .queueFull }
}
