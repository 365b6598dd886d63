import Postgres
import SQL
import Subscriptions

/// A look at what changed: the next one is told what has changed since.
struct RightLook: Sendable, Hashable {
    /// Which log was looked at; after a crash, a failover or a restore it is another one.
    let log: String
    /// What the look could see, as PostgreSQL's `pg_snapshot`.
    let snapshot: String
}

/// What changed between two looks.
struct RightChanges: Sendable {
    /// What answers rest on that changed.
    enum Extent: Sendable, Hashable {
        /// Only this.
        case these([RightBasis])
        /// All of it, or so much, or it is not known any more.
        case everything
    }

    /// The later look.
    let look: RightLook
    /// The database's clock at that look.
    let time: Instant
    /// What changed.
    let extent: Extent
    /// What was checked and is as it was, but for clocks.
    var checks: [RightCheck] = []

    /// Everything that is named, changed or checked.
    var named: [RightBasis] {
        let checked = checks.map(\.thing)
        guard case .these(let changed) = extent else { return checked }
        return changed + checked
    }
}

/// An answer of Apple's about a subscription or a one-time purchase that said what was known.
struct RightCheck: Sendable, Hashable {
    let thing: RightBasis
    /// Apple's clock of it.
    let asOf: Instant
    /// When it came.
    let checkedAt: Instant
}

extension SubscriptionLedger {
    /// Statements whose changes are told one by one; when there are more, everything has changed.
    static let rightChangesMax = 10_000

    /// What has changed since `look`, by everyone whose commit was over when this was called; nil for the first look.
    ///
    /// Nil where changes are not logged: on a standby, and after a crash until the log is tended.
    func rightChanges(since look: RightLook?) async throws -> RightChanges? {
        let most = Self.rightChangesMax
        guard let rows = try await loggedChanges(since: look, atMost: most + 1), let first = rows.first else {
            return nil
        }
        let noted = try rows.filter { try $0.boolIfPresent("is_noted") ?? false }
        let (changed, checks) = (try noted.map(RightBasis.all), try noted.map(RightCheck.all))
        let isKnown =
            try first.bool("follows") && noted.count <= most
            && !zip(changed, checks).contains { $0.isEmpty && $1.isEmpty }
        let (once, again) = RightCheck.sorted(checks.flatMap(\.self))
        return RightChanges(
            look: RightLook(log: try first.text("log"), snapshot: try first.text("snapshot")),
            time: try first.instant("now"), extent: isKnown ? .these(changed.flatMap(\.self) + again) : .everything,
            checks: isKnown ? once : [])
    }

    /// Nil on a standby, which cannot read a table that is not logged for it.
    private func loggedChanges(since look: RightLook?, atMost most: Int) async throws -> [Row]? {
        do {
            return try await query(
                Queries.rightChanges, [.text(look?.log), .text(look?.snapshot), .int8(Int64(most))])
        } catch let error as DatabaseError where error.sqlState == "0A000" {
            return nil
        }
    }

    /// Begins to log changes where they are not logged, and forgets those that no server asks about any more.
    package func tendRightLog() async throws {
        _ = try await write(Queries.tendRightLog)
    }
}

extension RightBasis {
    /// What a row names.
    static func all(in row: Row) throws -> [RightBasis] {
        try (row.int8sIfPresent("customers") ?? []).map { .customer($0) }
            + (row.int8sIfPresent("subscriptions") ?? []).map { .subscription($0) }
            + (row.int8sIfPresent("purchases") ?? []).map { .purchase($0) }
    }
}

extension RightCheck {
    /// What a row tells was checked.
    static func all(in row: Row) throws -> [RightCheck] {
        let subscriptions = (try row.int8sIfPresent("checked_subscriptions") ?? []).map { RightBasis.subscription($0) }
        let purchases = (try row.int8sIfPresent("checked_purchases") ?? []).map { RightBasis.purchase($0) }
        guard !subscriptions.isEmpty || !purchases.isEmpty else { return [] }
        let (asOfs, checkedAts) = (try row.timestamptzs("as_ofs"), try row.timestamptzs("checked_ats"))
        return zip(subscriptions + purchases, zip(asOfs, checkedAts)).map { thing, clocks in
            RightCheck(
                thing: thing, asOf: Instant(microseconds: clocks.0), checkedAt: Instant(microseconds: clocks.1))
        }
    }

    /// Those that are told once; of what was checked several times the last check is not known, so it has changed.
    static func sorted(_ checks: [RightCheck]) -> (once: [RightCheck], again: [RightBasis]) {
        let told = Dictionary(grouping: checks, by: \.thing)
        return (
            told.values.filter { $0.count == 1 }.flatMap(\.self),
            told.filter { $1.count > 1 }.map(\.key)
        )
    }
}
