import Crypto
import Foundation
package import JSON
import Postgres
import SQL
package import Subscriptions

/// The public id of an event: the UUIDv5 (RFC 9562) of its stream, version and ordinal, however often it is derived.
struct EventIdentity {
    let bytes: [UInt8]

    private static let namespace: [UInt8] = [
        0x0B, 0x5C, 0x3E, 0x9A, 0x61, 0x7D, 0x4E, 0x58, 0x9B, 0x21, 0x7F, 0x40, 0xD2, 0x8C, 0x35, 0xE6,
    ]

    init(stream: String, version: Int64, ordinal: Int16) { self.init(of: "\(stream)/\(version)/\(ordinal)") }

    init(of name: String) {
        var digest = Array(Insecure.SHA1.hash(data: Data(Self.namespace + Array(name.utf8))).prefix(16))
        digest[6] = digest[6] & 0x0F | 0x50
        digest[8] = digest[8] & 0x3F | 0x80
        bytes = digest
    }

    var uuid: String {
        let digits = bytes.hexadecimal
        let ends = [8, 12, 16, 20, 32].map { digits.index(digits.startIndex, offsetBy: $0) }
        return zip([digits.startIndex] + ends, ends).map { String(digits[$0..<$1]) }.joined(separator: "-")
    }
}

/// An event as a row of `insert_events`.
struct EventRow: ColumnarRow, Sendable {
    let publicID: [UInt8]
    let appID: Int32
    let environment: StoreEnvironment
    var subscriptionID: Int64?
    var purchaseID: Int64?
    let customerID: Int64?
    let recordedMicroseconds: Int64
    let draft: DraftEvent

    fileprivate var isOfCustomer: Bool { subscriptionID == nil && purchaseID == nil }

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
        .text("product_id") { $0.isOfCustomer ? nil : $0.draft.event.productID.text },
        .instant("occurred_at", \.draft.event.occurredAt),
        .instant("as_of", \.draft.asOf),
        .microseconds("recorded_at", \.recordedMicroseconds),
        .jsonb("detail") { .object($0.draft.event.detail.mapValues(\.json)) },
    ]
}

extension SettlementRun {
    /// Appends the batch's events; each is unique by stream, version and ordinal.
    func writeEvents(in transaction: Transaction) throws {
        let rows =
            subscriptions.values.sorted { $0.rowID < $1.rowID }.flatMap(eventRows(of:))
            + purchases.values.sorted { $0.rowID < $1.rowID }.flatMap(eventRows(of:))
        if !rows.isEmpty { try transaction.query(Queries.insertEvents, rows: rows) }
        for environment in StoreEnvironment.allCases {
            let former = formerOwners(in: environment)
            let gainers = silentGainers(in: environment).subtracting(former)
            try EntitlementsChanged(customers: former, cause: .transfer, environment: environment)
                .write(since: newestRecord, in: transaction)
            try EntitlementsChanged(customers: gainers, cause: .move, environment: environment)
                .write(since: newestRecord, in: transaction)
        }
    }

    /// Tells customers that provisional access ended, where no event of what is theirs says what they may use instead.
    func writeEventsOfEndedProvisionals(of customers: Set<CustomerID>, in transaction: Transaction) throws {
        let changed =
            subscriptions.values.filter { !$0.events.isEmpty }.map(\.ownership)
            + purchases.values.filter { !$0.events.isEmpty }.map(\.ownership)
        let owners = Set(changed.compactMap { $0.current?.customer })
        try EntitlementsChanged(customers: customers.subtracting(owners), cause: .verification)
            .write(since: newestRecord, in: transaction)
    }

    /// The owners of subscriptions that give access by a move although no event of these says so: where another
    /// customer's period came, whose charge was reported before; where one came back; where who paid has access again.
    private func silentGainers(in environment: StoreEnvironment) -> Set<CustomerID> {
        let gaining = moves.filter { $0.to.environment == environment }.flatMap { move in
            guard move.move.isNew, let to = subscriptions[move.to] else { return [move.from] }
            let isOfAnother =
                to.ownership.current?.customer != subscriptions[move.from]?.ownership.current?.customer
            let isBack =
                to.stored?.facts.periods.contains {
                    $0.movedTo != nil && move.move.row.chargeKey.map($0.chargeKeys.contains) ?? false
                } ?? false
            return isOfAnother || isBack ? [move.from, move.to] : [move.from]
        }
        return Set(
            gaining.compactMap { subscriptions[$0] }.filter(\.gainsAccessSilently)
                .compactMap(\.ownership.current?.customer))
    }

    private var newestRecord: Int64 {
        (subscriptions.values.map(\.recordedMicroseconds) + purchases.values.map(\.recordedMicroseconds)).max()
            ?? recordedMicroseconds
    }

    /// The owners who lost something to another customer. After a merge or a split both customers have an event anyway.
    private func formerOwners(in environment: StoreEnvironment) -> Set<CustomerID> {
        let kept = subscriptions.filter { $0.key.environment == environment }.map(\.value.ownership)
        let bought = purchases.filter { $0.key.environment == environment }.map(\.value.ownership)
        return Set((kept + bought).compactMap(\.formerOwner))
    }

    private func eventRows(of draft: SubscriptionDraft) -> [EventRow] {
        let owner = draft.ownership.current
        return draft.events.map { event in
            EventRow(
                publicID: EventIdentity(stream: draft.key.stream, version: event.version, ordinal: event.ordinal).bytes,
                appID: draft.key.appID, environment: draft.key.environment, subscriptionID: draft.rowID,
                customerID: owner?.customer.number, recordedMicroseconds: draft.recordedMicroseconds, draft: event)
        }
    }

    private func eventRows(of draft: PurchaseDraft) -> [EventRow] {
        let owner = draft.ownership.current
        return draft.events.map { event in
            EventRow(
                publicID: EventIdentity(stream: draft.key.stream, version: event.version, ordinal: event.ordinal).bytes,
                appID: draft.key.appID, environment: draft.key.environment, purchaseID: draft.rowID,
                customerID: owner?.customer.number, recordedMicroseconds: draft.recordedMicroseconds, draft: event)
        }
    }
}

/// The event that what customers may use changed although no event of their subscriptions and purchases says so. The
/// customers are locked, and what they may use is written in the same transaction.
struct EntitlementsChanged {
    enum Cause: String, Sendable {
        case grant, revocation, merge, split, transfer, move, verification
    }

    let customers: Set<CustomerID>
    let cause: Cause
    /// Decisions by hand belong to no environment; they count as production's.
    var environment = StoreEnvironment.production

    /// Appends one event to the stream of each customer, recorded no earlier than the changes.
    func write(since microseconds: Int64, in transaction: Transaction) throws {
        guard !customers.isEmpty else { return }
        let next = try transaction.query(
            Queries.nextCustomerVersions, .int8s(customers.map(\.number)), .timestamptz(microseconds: microseconds))
        let rows = try next.map { row in
            let (app, customer) = (try row.int4("app_id"), try row.int8("customer_id"))
            let (version, recorded) = (try row.int8("version"), try row.timestamptz("recorded_at"))
            let at = Instant(microseconds: recorded)
            let event = Event(
                kind: .entitlementsChanged, productID: "", occurredAt: at, detail: ["cause": .text(cause.rawValue)])
            return EventRow(
                publicID: EventIdentity(stream: "customer/\(app)/\(customer)", version: version, ordinal: 0).bytes,
                appID: app, environment: environment, customerID: customer, recordedMicroseconds: recorded,
                draft: DraftEvent(version: version, ordinal: 0, asOf: at, event: event))
        }
        guard !rows.isEmpty else { return }
        try transaction.query(Queries.insertEvents, rows: rows)
    }
}

extension DetailValue {
    package var json: JSONValue {
        switch self {
        case .text(let text): .string(text)
        case .integer(let number): .integer(number)
        case .flag(let flag): .bool(flag)
        }
    }
}
