import Postgres
import SQL
import Subscriptions

/// What Apple said about a receipt, from the first to the last answer that meant it.
public struct ToldAnswer: Sendable {
    /// The observation's number.
    public let observation: Int64
    /// What the answer was worth.
    public let outcome: String
    /// Apple's status; nil when there was none.
    public let status: Int32?
    /// Why it was not verified, or what was odd about it.
    public let reason: String?
    /// Where it was asked.
    public let environment: String?
    /// Apple's clock of the first such answer.
    public let firstAsOf: Instant
    /// Apple's clock of the last one that was written down.
    public let lastAsOf: Instant
    /// When it was recorded.
    public let recordedAt: Instant
}

/// When a receipt is asked about next, and how.
public struct ReceiptSchedule: Sendable {
    /// How urgent it is.
    public let lane: Lane
    /// When it may be asked about.
    public let dueAt: Instant
    /// Tries since the last answer.
    public let attempts: Int
    /// Workers that ended while they held it.
    public let crashes: Int
    /// Whether it is being asked about.
    public let isInFlight: Bool
    /// Why the app's checks are paused; nil when they are not.
    public let pausedBecause: String?
}

extension SubscriptionLedger {
    /// What Apple said about a receipt, newest first.
    public func answers(about receipt: ReceiptID, limit: Int) async throws -> [ToldAnswer] {
        try await query(Queries.readAnswers, [.int8(receipt.number), .int4(Int32(clamping: limit))]).map { row in
            ToldAnswer(
                observation: try row.int8("observation_id"), outcome: try row.text("outcome"),
                status: try row.int4IfPresent("status"), reason: try row.textIfPresent("reason"),
                environment: try row.textIfPresent("environment"), firstAsOf: try row.instant("first_as_of"),
                lastAsOf: try row.instant("last_as_of"), recordedAt: try row.instant("recorded_at"))
        }
    }

    /// When a receipt is asked about next; nil when no more.
    public func schedule(of receipt: ReceiptID) async throws -> ReceiptSchedule? {
        try await query(Queries.readSchedule, [.int8(receipt.number)]).first.map { row in
            ReceiptSchedule(
                lane: Lane(rawValue: try row.int2("lane")) ?? .sweep,
                dueAt: max(try row.instant("due_at"), try row.instant("scheduled_for")),
                attempts: Int(try row.int2("attempts")), crashes: Int(try row.int2("crashes")),
                isInFlight: try row.bool("in_flight"), pausedBecause: try row.textIfPresent("paused_because"))
        }
    }

    /// Whether Apple was asked about a receipt within so many seconds; nil when there is no such receipt.
    public func wasAsked(about receipt: ReceiptID, withinSeconds seconds: Double) async throws -> Bool? {
        try await query(Queries.wasAskedLately, [.int8(receipt.number), .float8(seconds)]).first?.bool("asked")
    }

    /// Incidents, those that run first, then the newest.
    public func incidents(limit: Int) async throws -> [Incident] {
        try await query(Queries.listIncidents, [.int4(Int32(clamping: limit))]).map(Incident.init(row:))
    }
}
