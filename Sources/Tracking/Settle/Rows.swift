import JSON
import Postgres
import SQL
import Subscriptions

/// A value that a statement takes as one row of its array parameters.
protocol ColumnarRow {
    /// The columns that the statement names behind `unnest`, in the order of its parameters.
    static var columns: [Column<Self>] { get }
}

/// One array parameter of a statement: its name there, and its value in each row.
///
/// A value stands beside the name that the statement gives it, so two columns of one type cannot change places unseen.
/// A test compares the names with the statements.
struct Column<Item>: Sendable {
    let name: String
    let parameter: @Sendable ([Item]) -> Parameter

    static func bool(_ name: String, _ value: @escaping @Sendable (Item) -> Bool?) -> Column {
        Column(name: name) { .bools($0.map(value)) }
    }

    static func int2(_ name: String, _ value: @escaping @Sendable (Item) -> Int16?) -> Column {
        Column(name: name) { .int2s($0.map(value)) }
    }

    static func int4(_ name: String, _ value: @escaping @Sendable (Item) -> Int32?) -> Column {
        Column(name: name) { .int4s($0.map(value)) }
    }

    static func int8(_ name: String, _ value: @escaping @Sendable (Item) -> Int64?) -> Column {
        Column(name: name) { .int8s($0.map(value)) }
    }

    static func text(_ name: String, _ value: @escaping @Sendable (Item) -> String?) -> Column {
        Column(name: name) { .texts($0.map(value)) }
    }

    static func bytea(_ name: String, _ value: @escaping @Sendable (Item) -> [UInt8]?) -> Column {
        Column(name: name) { .byteas($0.map(value)) }
    }

    static func uuid(_ name: String, _ value: @escaping @Sendable (Item) -> [UInt8]?) -> Column {
        Column(name: name) { .uuids($0.map(value)) }
    }

    /// A `jsonb[]`; `null` is no value.
    static func jsonb(_ name: String, _ value: @escaping @Sendable (Item) -> JSONValue?) -> Column {
        Column(name: name) { .jsonbs($0.map { value($0).flatMap { $0 == .null ? nil : $0.rendered() } }) }
    }

    static func instant(_ name: String, _ value: @escaping @Sendable (Item) -> Instant?) -> Column {
        Column(name: name) { .instants($0.map(value)) }
    }

    /// A `timestamptz[]` from microseconds, the database's own precision.
    static func microseconds(_ name: String, _ value: @escaping @Sendable (Item) -> Int64?) -> Column {
        Column(name: name) { .timestamptzs($0.map(value)) }
    }
}

extension Transaction {
    /// Sends `rows` column by column, after the parameters in `first`.
    @discardableResult
    func query<Item: ColumnarRow>(
        _ file: SQLFile, _ first: [Parameter] = [], rows: [Item]
    ) throws -> [Row] {
        try query(file, first + Item.columns.map { $0.parameter(rows) })
    }
}

extension PeriodRecord {
    /// Reads a period's record from its row.
    init(row: Row) throws {
        self.init(
            transactionIDs: Set(try row.texts("transaction_ids").map { TransactionID($0) }),
            terms: Terms(
                productID: ProductID(try row.text("product_id")), purchasedAt: try row.instant("purchased_at"),
                expiresAt: try row.instant("expires_at"), quantity: Int(try row.int4("quantity"))),
            revocation: Revocation(
                cancelledAt: try row.instantIfPresent("cancelled_at"),
                reason: try row.textIfPresent("cancellation_reason")),
            path: try row.text("path"))
        id = try row.int8("period_id")
        webOrderLineItemID = try row.textIfPresent("web_order_line_item_id").map { WebOrderLineItemID($0) }
        isUpgraded = try row.bool("is_upgraded")
        originalPurchasedAt = try row.instantIfPresent("original_purchased_at")
        isTrial = try row.bool("is_trial")
        isIntro = try row.bool("is_intro")
        promotionalOfferID = try row.textIfPresent("promotional_offer_id")
        offerCodeRefName = try row.textIfPresent("offer_code_ref_name")
        groupID = try row.textIfPresent("group_id").map { SubscriptionGroupID($0) }
        ownership = try row.textIfPresent("ownership").map(Ownership.init(raw:))
        appAccountToken = try row.textIfPresent("app_account_token")
        replacedBy = try row.textIfPresent("replaced_by").map { OriginalTransactionID($0) }
        price = try Price(row: row)
        revocationPercentage = try row.intIfPresent("revocation_percentage")
        sale = try row.jsonIfPresent("sale").map { try Sale($0) }
        asOf = try row.instantIfPresent("as_of")
        olderFacts = try row.jsonIfPresent("older_facts").map { try [FactName: FactOrigin](stored: $0) } ?? [:]
        ending = try row.jsonIfPresent("ending").map { try Ending($0) }
    }
}

extension Row {
    /// Returns the value of a `jsonb` column; nil for null.
    func jsonIfPresent(_ name: String) throws -> JSONValue? {
        try textIfPresent(name).map { try JSONValue(parsing: $0) }
    }
}

extension Price {
    /// Reads the price that a signed transaction gave; nil where none did. A currency alone is a price that cannot be read.
    fileprivate init?(row: Row) throws {
        guard let currency = try row.textIfPresent("price_currency") else { return nil }
        self.init(milliunits: try row.int8IfPresent("price_milliunits"), currency: currency)
    }
}

/// A period as a row of `write_periods`.
struct PeriodWrite: Sendable {
    let id: Int64
    let subscriptionID: Int64
    let recordedMicroseconds: Int64
    let record: PeriodRecord

    init(id: Int64, of draft: SubscriptionDraft, _ record: PeriodRecord) {
        self.id = id
        subscriptionID = draft.rowID
        recordedMicroseconds = draft.recordedMicroseconds
        self.record = record
    }
}

extension PeriodWrite: ColumnarRow {
    static let columns: [Column<PeriodWrite>] = [
        .int8("period_id", \.id),
        .int8("subscription_id", \.subscriptionID),
        .text("web_order_line_item_id", \.record.webOrderLineItemID?.text),
        .text("product_id", \.record.terms.productID.text),
        .int4("quantity") { Int32(clamping: $0.record.terms.quantity) },
        .instant("purchased_at", \.record.terms.purchasedAt),
        .instant("expires_at", \.record.terms.expiresAt),
        .instant("original_purchased_at", \.record.originalPurchasedAt),
        .instant("cancelled_at", \.record.revocation.cancelledAt),
        .text("cancellation_reason", \.record.revocation.reason),
        .bool("is_upgraded", \.record.isUpgraded),
        .bool("is_trial", \.record.isTrial),
        .bool("is_intro", \.record.isIntro),
        .text("promotional_offer_id", \.record.promotionalOfferID),
        .text("offer_code_ref_name", \.record.offerCodeRefName),
        .text("group_id", \.record.groupID?.text),
        .text("ownership", \.record.ownership?.raw),
        .text("app_account_token", \.record.appAccountToken),
        .text("replaced_by", \.record.replacedBy?.text),
        .int8("price_milliunits", \.record.price?.milliunits),
        .text("price_currency", \.record.price?.currency),
        .int4("revocation_percentage") { $0.record.revocationPercentage.map(Int32.init(clamping:)) },
        .jsonb("sale", \.record.sale?.json),
        .jsonb("ending", \.record.ending?.json),
        .instant("as_of", \.record.asOf),
        .text("path", \.record.path),
        .jsonb("older_facts", \.record.olderFacts.json),
        .bool("is_renewal", \.record.isRenewal),
        .microseconds("recorded_at", \.recordedMicroseconds),
    ]
}
