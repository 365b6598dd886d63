import Postgres
import SQL
import Subscriptions

/// A look at the log of changes; the next look returns the changes since this one.
struct RightLook: Sendable, Hashable {
    /// Which log was looked at; after a crash, a failover or a restore it is another one.
    let log: String
    /// What the look could see, as PostgreSQL's `pg_snapshot`.
    let snapshot: String
}

/// What changed between two looks.
struct RightChanges: Sendable {
    /// The changed things that answers depend on.
    enum Extent: Sendable, Hashable {
        /// Only this.
        case these([RightBasis])
        /// Everything, or too much to list, or the changes are no longer known.
        case everything
    }

    /// The later look.
    let look: RightLook
    /// The database's clock at that look.
    let time: Instant
    /// What changed.
    let extent: Extent
    /// The things that were checked and did not change, except their clocks.
    var checks: [RightCheck] = []

    /// All things that changed or were checked.
    var named: [RightBasis] {
        let checked = checks.map(\.thing)
        guard case .these(let changed) = extent else { return checked }
        return changed + checked
    }
}

/// An answer from Apple about a subscription or a one-time purchase that confirmed the known facts.
struct RightCheck: Sendable, Hashable {
    let thing: RightBasis
    /// Apple's clock of it.
    let asOf: Instant
    /// When it came.
    let checkedAt: Instant
}

extension LedgerCustomers {
    /// The most statements whose changes are listed one by one; with more, everything counts as changed.
    static let rightChangesMax = 10_000

    /// Returns the changes since `look` by every transaction that committed before this call; `look` is nil for the
    /// first look.
    ///
    /// Returns nil where changes are not logged: on a standby, and after a crash until the log is tended.
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

    /// Returns nil on a standby, which cannot read an unlogged table.
    private func loggedChanges(since look: RightLook?, atMost most: Int) async throws -> [Row]? {
        do {
            return try await query(
                Queries.rightChanges, [.text(look?.log), .text(look?.snapshot), .int8(Int64(most))])
        } catch let error as DatabaseError where error.sqlState == "0A000" {
            return nil
        }
    }

    /// Begins to log changes where they are not logged, and deletes those that no server needs any more.
    package func pruneRightLog() async throws {
        _ = try await write(Queries.pruneRightLog)
    }
}

extension RightBasis {
    /// Returns the things that a row names.
    static func all(in row: Row) throws -> [RightBasis] {
        try (row.int8sIfPresent("customers") ?? []).map { .customer($0) }
            + (row.int8sIfPresent("subscriptions") ?? []).map { .subscription($0) }
            + (row.int8sIfPresent("purchases") ?? []).map { .purchase($0) }
    }
}

extension RightCheck {
    /// Returns the checks in a row.
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

    /// Splits the checks: things checked once, and things checked several times. The last check of the latter is not
    /// known, so they count as changed.
    static func sorted(_ checks: [RightCheck]) -> (once: [RightCheck], again: [RightBasis]) {
        let byThing = Dictionary(grouping: checks, by: \.thing)
        return (
            byThing.values.filter { $0.count == 1 }.flatMap(\.self),
            byThing.filter { $1.count > 1 }.map(\.key)
        )
    }
}
