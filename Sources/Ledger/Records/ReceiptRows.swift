import Postgres
import Subscriptions

/// What is remembered of a receipt.
struct RememberedReceipt: Sendable {
    let receiptID: ReceiptID
    /// Equal refusals in a row, and when the first came.
    let rejections: Int
    let rejectedSince: Instant?
    /// Verified answers in a row that held nothing.
    let emptyAnswers: Int
    let observationID: Int64?
    /// Microseconds; with the id it finds the observation's row.
    let observationRecordedAt: Int64?
    /// The clock of the first answer of that observation.
    let observedFrom: Instant?
    let meaning: [UInt8]?
    let verifiedAt: Instant?
    /// When the device made it, as far as Apple said.
    let createdAt: Instant?
    /// Whether its last answer was a refusal, which may have been forgiven.
    let wasRefused: Bool
    /// The token of the lease under which an answer about it was settled last.
    let settledToken: Int64
    /// Whether its customer was erased: nothing that comes of it is kept any more.
    let isErased: Bool

    init(row: Row) throws {
        receiptID = ReceiptID(try row.int8("receipt_id"))
        rejections = Int(try row.int2("rejections"))
        rejectedSince = try row.instantIfPresent("rejected_since")
        emptyAnswers = Int(try row.int2("equal_empty_answers"))
        observationID = try row.int8IfPresent("observation_id")
        observationRecordedAt = try row.timestamptzIfPresent("observed_at")
        observedFrom = try row.instantIfPresent("observed_from")
        meaning = try row.byteaIfPresent("meaning")
        verifiedAt = try row.instantIfPresent("verified_at")
        createdAt = try row.instantIfPresent("receipt_created_at")
        wasRefused = try row.bool("refused")
        settledToken = try row.int8("settled_token")
        isErased = try row.bool("erased")
    }
}

/// Decodes rows into values by one of their properties; of equal keys the last counts.
func keyed<Key: Hashable, Value>(
    _ rows: [Row], _ decode: (Row) throws -> Value, by key: KeyPath<Value, Key>
) throws -> [Key: Value] {
    try rows.reduce(into: [:]) { values, row in
        let value = try decode(row)
        values[value[keyPath: key]] = value
    }
}
