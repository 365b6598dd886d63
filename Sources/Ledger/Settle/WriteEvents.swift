import Crypto
import Foundation
import Postgres
import SQL
import Subscriptions

/// The public id of an event: the UUIDv5 (RFC 9562) of its stream, version and ordinal. The id is the same however
/// often the event is derived.
struct EventIdentity {
    /// 16 bytes.
    let bytes: [UInt8]

    private static let namespace: [UInt8] = [
        0x0B, 0x5C, 0x3E, 0x9A, 0x61, 0x7D, 0x4E, 0x58, 0x9B, 0x21, 0x7F, 0x40, 0xD2, 0x8C, 0x35, 0xE6,
    ]

    init(stream: String, version: Int64, ordinal: Int16) {
        let name = "\(stream)/\(version)/\(ordinal)"
        var digest = Array(Insecure.SHA1.hash(data: Data(Self.namespace + Array(name.utf8))).prefix(16))
        digest[6] = digest[6] & 0x0F | 0x50
        digest[8] = digest[8] & 0x3F | 0x80
        bytes = digest
    }
}

/// An event as a row of `insert_events`.
struct EventRow: Sendable {
    let publicID: [UInt8]
    let appID: Int32
    let environment: StoreEnvironment
    let subscriptionID: Int64?
    let purchaseID: Int64?
    let customerID: Int64?
    let recordedMicroseconds: Int64
    let draft: DraftEvent
    /// The event's detail as JSON.
    let detail: String
}

extension EventRow: ColumnarRow {
    static let columns: [Column<EventRow>] = [
        .uuid("public_id", \.publicID),
        .int4("app_id", \.appID),
        .text("environment", \.environment.rawValue),
        .int8("subscription_id", \.subscriptionID),
        .int8("purchase_id", \.purchaseID),
        .int8("version", \.draft.version),
        .int2("ordinal", \.draft.ordinal),
        .text("kind", \.draft.event.kind.rawValue),
        .int8("customer_id", \.customerID),
        .text("product_id", \.draft.event.productID.text),
        .instant("occurred_at", \.draft.event.occurredAt),
        .instant("as_of", \.draft.asOf),
        .microseconds("recorded_at", \.recordedMicroseconds),
        .jsonb("detail", \.detail),
    ]
}

extension SettlementRun {
    /// Appends the batch's events; each is unique by stream, version and ordinal.
    func writeEvents(in transaction: Transaction) throws {
        let rows =
            try subscriptions.values.sorted { $0.rowID < $1.rowID }.flatMap(eventRows(of:))
            + purchases.values.sorted { $0.rowID < $1.rowID }.flatMap(eventRows(of:))
        guard !rows.isEmpty else { return }
        try transaction.query(Queries.insertEvents, rows: rows)
    }

    private func eventRows(of draft: SubscriptionDraft) throws -> [EventRow] {
        let owner = draft.ownership.current
        return try draft.events.map { event in
            EventRow(
                publicID: EventIdentity(stream: draft.key.stream, version: event.version, ordinal: event.ordinal).bytes,
                appID: draft.key.appID, environment: draft.key.environment, subscriptionID: draft.rowID,
                purchaseID: nil, customerID: owner?.customer.number,
                recordedMicroseconds: draft.recordedMicroseconds, draft: event, detail: try event.event.detail.json)
        }
    }

    private func eventRows(of draft: PurchaseDraft) throws -> [EventRow] {
        let owner = draft.ownership.current
        return try draft.events.map { event in
            EventRow(
                publicID: EventIdentity(stream: draft.key.stream, version: event.version, ordinal: event.ordinal).bytes,
                appID: draft.key.appID, environment: draft.key.environment, subscriptionID: nil,
                purchaseID: draft.rowID, customerID: owner?.customer.number,
                recordedMicroseconds: draft.recordedMicroseconds, draft: event, detail: try event.event.detail.json)
        }
    }
}

extension [String: DetailValue] {
    /// The detail as JSON for a `jsonb` column.
    fileprivate var json: String {
        get throws { try ColumnJSON.text(of: mapValues(DetailJSON.init)) }
    }
}

/// One value of an event's detail as JSON.
private struct DetailJSON: Encodable {
    let value: DetailValue

    init(_ value: DetailValue) {
        self.value = value
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch value {
        case .text(let text): try container.encode(text)
        case .integer(let number): try container.encode(number)
        case .flag(let flag): try container.encode(flag)
        }
    }
}
