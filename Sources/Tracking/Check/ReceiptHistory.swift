import Postgres
import SQL
package import Subscriptions

/// An answer of Apple about a receipt, from the first to the last answer with the same meaning.
package struct RecordedAnswer: Sendable {
    package let observation: Int64
    package let outcome: String
    /// Apple's status; nil when the answer had none.
    package let status: Int32?
    /// The reason why the receipt was not verified, or an oddity of the answer.
    package let reason: String?
    package let environment: String?
    /// Apple's clock of the first such answer.
    package let firstAsOf: Instant
    /// Apple's clock of the last such answer that was recorded.
    package let lastAsOf: Instant
    package let recordedAt: Instant
}

/// The schedule of a receipt's next check.
package struct ReceiptSchedule: Sendable {
    package let lane: Lane
    /// The earliest time at which Apple may be asked about it.
    package let dueAt: Instant
    /// Attempts since the last answer.
    package let attempts: Int
    /// Workers that crashed while they had leased it.
    package let crashes: Int
    package let isInFlight: Bool
    /// The reason why the app's checks are paused; nil when they are not.
    package let pausedBecause: String?
}

extension LedgerAdmin {
    /// Returns Apple's answers about a receipt, newest first, at most `limit`.
    package func answers(about receipt: ReceiptID, limit: Int) async throws -> [RecordedAnswer] {
        try await query(Queries.readAnswers, .int8(receipt.number), .int4(Int32(clamping: limit))).map { row in
            RecordedAnswer(
                observation: try row.int8("observation_id"), outcome: try row.text("outcome"),
                status: try row.int4IfPresent("status"), reason: try row.textIfPresent("reason"),
                environment: try row.textIfPresent("environment"), firstAsOf: try row.instant("first_as_of"),
                lastAsOf: try row.instant("last_as_of"), recordedAt: try row.instant("recorded_at"))
        }
    }

    /// Returns the schedule of a receipt; nil when no further check is planned.
    package func schedule(of receipt: ReceiptID) async throws -> ReceiptSchedule? {
        try await query(Queries.readSchedule, .int8(receipt.number)).first.map { row in
            ReceiptSchedule(
                lane: try row.word("lane"),
                dueAt: max(try row.instant("due_at"), try row.instant("scheduled_for")),
                attempts: Int(try row.int2("attempts")), crashes: Int(try row.int2("crashes")),
                isInFlight: try row.bool("in_flight"), pausedBecause: try row.textIfPresent("paused_because"))
        }
    }

    /// Returns whether Apple was asked about a receipt within the last `seconds`; nil when the receipt does not exist.
    package func wasAsked(about receipt: ReceiptID, withinSeconds seconds: Double) async throws -> Bool? {
        try await query(Queries.wasAskedLately, .int8(receipt.number), .float8(seconds)).first?.bool("asked")
    }
}
