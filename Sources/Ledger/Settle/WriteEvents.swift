import Postgres
import SQL
import Subscriptions

/// An event as a row to insert.
struct EventRow: Sendable {
    let publicID: [UInt8]
    let appID: Int32
    let environment: StoreEnvironment
    let subscriptionID: Int64?
    let purchaseID: Int64?
    let customerID: Int64?
    let recordedMicroseconds: Int64
    let draft: DraftEvent
}

extension SettlementRun {
    /// Appends the batch's events; each is unique by stream, version and ordinal.
    func writeEvents(in transaction: Transaction) throws {
        let rows =
            subscriptions.values.sorted { $0.rowID < $1.rowID }.flatMap(eventRows(of:))
            + purchases.values.sorted { $0.rowID < $1.rowID }.flatMap(eventRows(of:))
        guard !rows.isEmpty else { return }
        try transaction.query(
            Queries.insertEvents,
            [
                .uuids(rows.map(\.publicID)), .int4s(rows.map(\.appID)), .texts(rows.map(\.environment.rawValue)),
                .int8s(rows.map(\.subscriptionID)), .int8s(rows.map(\.purchaseID)), .int8s(rows.map(\.draft.version)),
                .int2s(rows.map(\.draft.ordinal)), .texts(rows.map(\.draft.event.kind.rawValue)),
                .int8s(rows.map(\.customerID)), .texts(rows.map(\.draft.event.productID.text)),
                .instants(rows.map(\.draft.event.occurredAt)), .instants(rows.map(\.draft.asOf)),
                .timestamptzs(rows.map(\.recordedMicroseconds)),
                .jsonbs(try rows.map { try $0.draft.event.detail.json }),
            ])
    }

    private func eventRows(of draft: SubscriptionDraft) -> [EventRow] {
        let owner = draft.ownership.current
        return draft.events.map { event in
            EventRow(
                publicID: EventIdentity(stream: draft.key.stream, version: event.version, ordinal: event.ordinal).bytes,
                appID: draft.key.appID, environment: draft.key.environment, subscriptionID: draft.rowID,
                purchaseID: nil, customerID: owner?.customer.number,
                recordedMicroseconds: draft.recordedMicroseconds, draft: event)
        }
    }

    private func eventRows(of draft: PurchaseDraft) -> [EventRow] {
        let owner = draft.ownership.current
        return draft.events.map { event in
            EventRow(
                publicID: EventIdentity(stream: draft.key.stream, version: event.version, ordinal: event.ordinal).bytes,
                appID: draft.key.appID, environment: draft.key.environment, subscriptionID: nil,
                purchaseID: draft.rowID, customerID: owner?.customer.number,
                recordedMicroseconds: draft.recordedMicroseconds, draft: event)
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
