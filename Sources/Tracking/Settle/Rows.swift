import JSON
import Postgres
import SQL
import Subscriptions

/// A value that a statement takes as one row of its array parameters.
protocol ColumnarRow {
    /// The columns that the statement names behind `unnest`, in the order of its parameters.
    static var columns: [Column<Self>] { get }
}

/// One array parameter of a statement: its name there, and its value in each row, so that two columns of one type
/// cannot change places unseen. A test compares the names with the statements.
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
    func query<Item: ColumnarRow>(_ file: SQLFile, _ first: [Parameter] = [], rows: [Item]) throws -> [Row] {
        try query(file, first + Item.columns.map { $0.parameter(rows) })
    }
}

extension PeriodRecord {
    init(row: Row) throws {
        let older = try row.jsonIfPresent("older_facts").map { try [FactName: FactOrigin](stored: $0) } ?? [:]
        func fact<Value>(_ name: FactName, _ value: Value) -> Fact<Value> {
            Fact(value, origin: older[name] ?? .row)
        }
        func flag(_ name: FactName) throws -> Fact<Bool>? {
            let flag = fact(name, try row.bool(name.rawValue))
            return flag.origin == .unspoken ? nil : flag
        }
        func word(_ name: FactName) throws -> String? { try row.textIfPresent(name.rawValue) }
        var details = PeriodDetails()
        details.originalPurchasedAt = try row.instantIfPresent(FactName.originalPurchasedAt.rawValue)
            .map { fact(.originalPurchasedAt, $0) }
        details.isTrial = try flag(.isTrial)
        details.isIntro = try flag(.isIntro)
        details.promotionalOfferID = try word(.promotionalOfferID).map { fact(.promotionalOfferID, $0) }
        details.offerCodeRefName = try word(.offerCodeRefName).map { fact(.offerCodeRefName, $0) }
        details.groupID = try word(.groupID).map { fact(.groupID, SubscriptionGroupID($0)) }
        details.ownership = try word(.ownership).map { fact(.ownership, Ownership(raw: $0)) }
        details.appAccountToken = try word(.appAccountToken).map { fact(.appAccountToken, $0) }
        details.replacedBy = try word(.replacedBy).map { fact(.replacedBy, OriginalTransactionID($0)) }
        details.price = try Price(row: row).map { fact(.price, $0) }
        details.revocationPercentage = try row.intIfPresent(FactName.revocationPercentage.rawValue)
            .map { fact(.revocationPercentage, $0) }
        details.sale = try row.jsonIfPresent(FactName.sale.rawValue).map { fact(.sale, try Sale($0)) }
        details.arrival = older[.arrival]
        self.init(
            transactionIDs: Set(try row.texts("transaction_ids").map { TransactionID($0) }),
            terms: Terms(
                productID: ProductID(try row.text("product_id")), purchasedAt: try row.instant("purchased_at"),
                expiresAt: try row.instant("expires_at"), quantity: Int(try row.int4("quantity"))),
            revocation: fact(
                .revocation,
                Revocation(
                    cancelledAt: try row.instantIfPresent("cancelled_at"),
                    reason: try row.textIfPresent("cancellation_reason"))),
            upgrade: fact(.upgrade, try row.bool("is_upgraded")), details: details, path: try row.text("path"))
        id = try row.int8("period_id")
        webOrderLineItemID = try row.textIfPresent("web_order_line_item_id").map { WebOrderLineItemID($0) }
        asOf = try row.instantIfPresent("as_of")
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
    /// Reads the price in a signed transaction; nil where it had none. A currency alone is a price that cannot be read.
    fileprivate init?(row: Row) throws {
        guard let currency = try row.textIfPresent("price_currency") else { return nil }
        self.init(milliunits: try row.int8IfPresent("price_milliunits"), currency: currency)
    }
}

/// A period as a row of `write_periods`.
struct PeriodWrite: ColumnarRow, Sendable {
    let id: Int64
    let subscriptionID: Int64
    let recordedMicroseconds: Int64
    let record: PeriodRecord

    static let columns: [Column<PeriodWrite>] = [
        .int8("period_id", \.id),
        .int8("subscription_id", \.subscriptionID),
        .text("web_order_line_item_id", \.record.webOrderLineItemID?.text),
        .text("product_id", \.record.terms.productID.text),
        .int4("quantity") { Int32(clamping: $0.record.terms.quantity) },
        .instant("purchased_at", \.record.terms.purchasedAt),
        .instant("expires_at", \.record.terms.expiresAt),
        .instant("original_purchased_at", \.record.details.originalPurchasedAt?.value),
        .instant("cancelled_at", \.record.revocation.value.cancelledAt),
        .text("cancellation_reason", \.record.revocation.value.reason),
        .bool("is_upgraded", \.record.upgrade.value),
        .bool("is_trial") { $0.record.details.isTrial?.value ?? false },
        .bool("is_intro") { $0.record.details.isIntro?.value ?? false },
        .text("promotional_offer_id", \.record.details.promotionalOfferID?.value),
        .text("offer_code_ref_name", \.record.details.offerCodeRefName?.value),
        .text("group_id", \.record.details.groupID?.value.text),
        .text("ownership", \.record.details.ownership?.value.raw),
        .text("app_account_token", \.record.details.appAccountToken?.value),
        .text("replaced_by", \.record.details.replacedBy?.value.text),
        .int8("price_milliunits", \.record.details.price?.value.milliunits),
        .text("price_currency", \.record.details.price?.value.currency),
        .int4("revocation_percentage") { ($0.record.details.revocationPercentage?.value).map(Int32.init(clamping:)) },
        .jsonb("sale", \.record.details.sale?.value.json),
        .jsonb("ending", \.record.ending?.json),
        .instant("as_of", \.record.asOf),
        .text("path", \.record.path),
        .jsonb("older_facts", \.record.olderFacts.json),
        .bool("is_renewal", \.record.isRenewal),
        .microseconds("recorded_at", \.recordedMicroseconds),
    ]
}
