import Postgres
import Subscriptions

/// The stored facts of a receipt.
struct RememberedReceipt: Sendable {
    let receiptID: ReceiptID
    /// Consecutive refusals, and when the first came.
    let rejections: Int
    let rejectedSince: Instant?
    /// Consecutive verified answers without contents.
    let emptyAnswers: Int
    let observationID: Int64?
    /// Microseconds; with the id it identifies the observation's row.
    let observationRecordedAt: Int64?
    /// The clock of the first answer of that observation.
    let observedFrom: Instant?
    let meaning: [UInt8]?
    let verifiedAt: Instant?
    /// When the device made it, as far as Apple reported it.
    let createdAt: Instant?
    /// When it was first sent.
    let receivedAt: Instant
    /// Whether its last answer was a refusal, which may have been forgiven.
    let wasRefused: Bool
    /// The token of the lease under which the last answer about it was settled.
    let settledToken: Int64
    /// Whether its customer was erased: no later answer about it is stored.
    let isErased: Bool
    let sender: ReceiptSender

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
        receivedAt = try row.instant("received_at")
        wasRefused = try row.bool("refused")
        settledToken = try row.int8("settled_token")
        isErased = try row.bool("erased")
        sender = ReceiptSender(rawValue: try row.int2("sender")) ?? .none
    }
}

/// Who sent a receipt, and how far the sender is believed: of two receipts that hold the same, the one of the greater is asked.
enum ReceiptSender: Int16, Comparable, Sendable {
    /// No customer: a notification named its transaction.
    case none
    /// A customer who only points at the contents.
    case pointing
    /// A customer, and Apple vouched for it.
    case vouched

    static func < (left: ReceiptSender, right: ReceiptSender) -> Bool { left.rawValue < right.rawValue }
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
