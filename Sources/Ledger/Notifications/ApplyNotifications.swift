import Postgres
import SQL
package import Subscriptions

/// The result of applying notifications.
package struct AppliedNotifications: Sendable {
    /// How many were looked at.
    package var notifications = 0
    /// The number of events.
    package var events = 0
    /// What the Server API has to be asked about before some of them can be applied.
    package var unknown: [UnknownTransaction] = []
}

/// A transaction of a subscription that is not known yet.
package struct UnknownTransaction: Sendable, Hashable {
    /// The app.
    package let bundleID: BundleID
    /// The transaction.
    package let id: TransactionID
}

extension LedgerSettlements {
    /// The most notifications that one transaction applies.
    package static let notificationsMax = 100
    /// How long a notification rests after applying it failed for the first time, in seconds.
    private static let restSeconds = 60.0

    /// Applies verified notifications that are due: facts, timelines, events and schedules change together, by the same
    /// rules as with an answer. Each is applied once; a repetition would change nothing.
    ///
    /// One that cannot be applied rests, and the others go on.
    package func applyNotifications(reading read: @escaping ReadNotification) async throws -> AppliedNotifications {
        do {
            return try await apply(atMost: Self.notificationsMax, reading: read)
        } catch let error as DatabaseError where error.isUnreachable {
            throw error
        } catch {
            return try await applySingly(reading: read)
        }
    }

    private func applySingly(reading read: @escaping ReadNotification) async throws -> AppliedNotifications {
        do {
            return try await apply(atMost: 1, reading: read)
        } catch let error as DatabaseError where error.isUnreachable {
            throw error
        } catch {
            _ = try await write(Queries.postponeNotification, [.float8(Self.restSeconds), .text("\(error)")])
            return AppliedNotifications(notifications: 1)
        }
    }

    private func apply(atMost limit: Int, reading read: @escaping ReadNotification) async throws -> AppliedNotifications
    {
        let apps = Dictionary(try await ledger.apps.all().map { ($0.id, $0) }) { first, _ in first }
        return try await ledger.changingPollers { transaction in
            let rows = try transaction.query(Queries.lockNotificationsToApply, [.int4(Int32(limit))])
            guard !rows.isEmpty else { return AppliedNotifications() }
            var outcomes: [Int64: NotificationOutcome] = [:]
            let notifications = try rows.compactMap { row -> DueNotification? in
                let kept = try KeptNotification(row: row)
                guard let app = apps[try row.int4("app_id")], let evidence = read(kept) else {
                    outcomes[kept.id] = .noFacts
                    return nil
                }
                return DueNotification(
                    id: kept.id, app: app, evidence: evidence, attempts: Int(try row.int2("attempts")))
            }
            var run = try SettlementRun(applying: notifications, apps: apps, in: transaction)
            let divisor = Double(ledger.speedup)
            outcomes.merge(run.fold(notifications, hastenedBy: divisor)) { $1 }
            let events = try run.writeFolded(in: transaction)
            try run.requireWhole(for: notifications, outcomes, in: transaction)
            try run.write(outcomes, of: notifications, hastenedBy: divisor, in: transaction)
            return AppliedNotifications(
                notifications: rows.count, events: events, unknown: run.unknown(among: notifications, outcomes))
        }
    }
}
