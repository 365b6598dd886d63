import Postgres
import SQL
import Subscriptions

/// The batch's subscriptions as they are stored.
struct LoadedSubscriptions {
    let drafts: [SubscriptionRowKey: SubscriptionDraft]

    /// Decodes the rows. A caller that only reads locks nothing, gets no owners, and does not
    /// learn what pollers left out.
    init(
        _ rows: [Row], recordedMicroseconds: Int64, lockingOwners: Bool = true, in transaction: Transaction
    ) throws {
        let ids = Parameter.int8s(try rows.map { try $0.int8("subscription_id") })
        let none = rows.isEmpty
        let periods = try grouped(
            none ? [] : transaction.query(Queries.readPeriods, [ids]), PeriodRecord.init(row:), by: "subscription_id")
        let spans = try grouped(
            none ? [] : transaction.query(Queries.readSpans, [ids]), StoredSpan.init(row:), by: "subscription_id")
        let owners = try grouped(
            none || !lockingOwners ? [] : transaction.query(Queries.readOwners, [ids, .int8s([])]), Owner.init(row:),
            by: "subscription_id")
        let omissions = try grouped(
            none || !lockingOwners ? [] : transaction.query(Queries.readOmissions, [ids]),
            PollingDraft.Omission.init(row:), by: "subscription_id")
        drafts = try rows.reduce(into: [:]) { drafts, row in
            let id = try row.int8("subscription_id")
            var draft = try SubscriptionDraft(
                row: row, periods: periods[id] ?? [], spans: spans[id] ?? [], owner: owners[id]?.first,
                recordedMicroseconds: recordedMicroseconds)
            draft.polling.omission = omissions[id]?.first
            drafts[draft.key] = draft
        }
    }
}

extension SubscriptionDraft {
    fileprivate init(
        row: Row, periods: [PeriodRecord], spans: [StoredSpan], owner: Owner?, recordedMicroseconds: Int64
    ) throws {
        let before = try row.timestamptzIfPresent("recorded_at")
        rowID = try row.int8("subscription_id")
        key = SubscriptionRowKey(
            appID: try row.int4("app_id"), environment: try row.word("environment"),
            id: OriginalTransactionID(try row.text("original_transaction_id")))
        storedSpans = spans
        self.recordedMicroseconds = max(recordedMicroseconds, before.map { $0 + 1 } ?? .min)
        version = try row.int8("version")
        stored = try Self.state(row, key: key, periods: periods, version: version)
        state = stored
        ownership.owner = owner
        polling = try PollingDraft(row: row)
        checkedMicroseconds = try row.timestamptzIfPresent("checked_at")
    }

    private static func state(
        _ row: Row, key: SubscriptionRowKey, periods: [PeriodRecord], version: Int64
    ) throws -> SubscriptionState? {
        guard version > 0 else { return nil }
        let renewal = try row.textIfPresent("renewal").map { text in
            Fact(
                try ColumnJSON.value(RenewalJSON.self, in: text).renewal, asOf: try row.instant("renewal_as_of"),
                path: try row.text("renewal_path"))
        }
        let facts = SubscriptionFacts(
            originalTransactionID: key.id, asOf: try row.instant("as_of"), records: periods, renewal: renewal)
        let leeway = Delay(milliseconds: try row.int8("leeway_ms"))
        return SubscriptionState(
            facts: facts, policy: Policy.standard(for: key.environment).with(leeway: leeway), version: version,
            retractions: try row.textIfPresent("suspected").map {
                try ColumnJSON.value([RetractionJSON].self, in: $0).compactMap(\.retraction)
            } ?? [])
    }
}

extension PollingDraft.Omission {
    fileprivate init(row: Row) throws {
        self.init(
            isByPoller: try row.bool("by_poller"), absences: Int(try row.int4("absences")),
            since: try row.instantIfPresent("absent_since"), isEverywhere: try row.bool("everywhere"))
    }
}

extension Owner {
    init(row: Row) throws {
        self.init(
            customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"),
            rowID: try row.int8("ownership_id"), transfers: Int(try row.int8("transfers")),
            cause: try row.wordIfPresent("cause"))
    }
}

/// Decodes rows into lists by an id.
func grouped<Value>(_ rows: [Row], _ decode: (Row) throws -> Value, by column: String) throws -> [Int64: [Value]] {
    try rows.reduce(into: [:]) { lists, row in
        lists[try row.int8(column), default: []].append(try decode(row))
    }
}
