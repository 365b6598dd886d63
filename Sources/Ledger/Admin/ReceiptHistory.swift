import Postgres
import SQL
import Subscriptions

/// What Apple said about a receipt, from the first to the last answer that meant it.
package struct ToldAnswer: Sendable {
    /// The observation's number.
    package let observation: Int64
    /// What the answer was worth.
    package let outcome: String
    /// Apple's status; nil when there was none.
    package let status: Int32?
    /// Why it was not verified, or what was odd about it.
    package let reason: String?
    /// Where it was asked.
    package let environment: String?
    /// Apple's clock of the first such answer.
    package let firstAsOf: Instant
    /// Apple's clock of the last one that was written down.
    package let lastAsOf: Instant
    /// When it was recorded.
    package let recordedAt: Instant
}

/// When a receipt is asked about next, and how.
package struct ReceiptSchedule: Sendable {
    /// How urgent it is.
    package let lane: Lane
    /// When it may be asked about.
    package let dueAt: Instant
    /// Tries since the last answer.
    package let attempts: Int
    /// Workers that ended while they held it.
    package let crashes: Int
    /// Whether it is being asked about.
    package let isInFlight: Bool
    /// Why the app's checks are paused; nil when they are not.
    package let pausedBecause: String?
}

extension SubscriptionLedger {
    /// What Apple said about a receipt, newest first.
    package func answers(about receipt: ReceiptID, limit: Int) async throws -> [ToldAnswer] {
        try await query(Queries.readAnswers, [.int8(receipt.number), .int4(Int32(clamping: limit))]).map { row in
            ToldAnswer(
                observation: try row.int8("observation_id"), outcome: try row.text("outcome"),
                status: try row.int4IfPresent("status"), reason: try row.textIfPresent("reason"),
                environment: try row.textIfPresent("environment"), firstAsOf: try row.instant("first_as_of"),
                lastAsOf: try row.instant("last_as_of"), recordedAt: try row.instant("recorded_at"))
        }
    }

    /// When a receipt is asked about next; nil when no more.
    package func schedule(of receipt: ReceiptID) async throws -> ReceiptSchedule? {
        try await query(Queries.readSchedule, [.int8(receipt.number)]).first.map { row in
            ReceiptSchedule(
                lane: Lane(rawValue: try row.int2("lane")) ?? .sweep,
                dueAt: max(try row.instant("due_at"), try row.instant("scheduled_for")),
                attempts: Int(try row.int2("attempts")), crashes: Int(try row.int2("crashes")),
                isInFlight: try row.bool("in_flight"), pausedBecause: try row.textIfPresent("paused_because"))
        }
    }

    /// Whether Apple was asked about a receipt within so many seconds; nil when there is no such receipt.
    package func wasAsked(about receipt: ReceiptID, withinSeconds seconds: Double) async throws -> Bool? {
        try await query(Queries.wasAskedLately, [.int8(receipt.number), .float8(seconds)]).first?.bool("asked")
    }

    /// Incidents, those that run first, then the newest.
    package func incidents(limit: Int) async throws -> [Incident] {
        try await query(Queries.listIncidents, [.int4(Int32(clamping: limit))]).map(Incident.init(row:))
    }
}
