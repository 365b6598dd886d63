import Postgres
import SQL
package import Subscriptions

/// What a list of customers is limited to; nil is no limit.
package struct CustomerFilter: Sendable, Hashable {
    /// The state of one of the customer's subscriptions.
    package var state: State?
    /// The product of one of them.
    package var product: String?
    /// The least net spending in one currency, in thousandths of its unit.
    package var spentMilliunits: Int64?

    package init(state: State? = nil, product: String? = nil, spentMilliunits: Int64? = nil) {
        (self.state, self.product, self.spentMilliunits) = (state, product, spentMilliunits)
    }
}

/// A customer in the list of the pages.
package struct CustomerSummary: Sendable, Hashable {
    /// An amount in one currency.
    package struct Amount: Sendable, Hashable {
        package let currency: String
        /// In thousandths of the currency's unit.
        package let milliunits: Int64
    }

    package let customer: String
    package let createdAt: Instant
    /// The states of the customer's subscriptions, those with access first.
    package let states: [String]
    /// The reasons for the states; empty for a state without one.
    package let reasons: [String]
    /// Their products, in the same order.
    package let products: [String]
    /// The latest expiry.
    package let expiresAt: Instant?
    /// What the customer spent less refunds, by the summaries, the most first.
    package let spent: [Amount]

    init(row: Row) throws {
        customer = try row.text("name")
        createdAt = try row.instant("created_at")
        (states, reasons) = (try row.texts("states"), try row.texts("reasons"))
        products = try row.texts("products")
        expiresAt = try row.instantIfPresent("expires_at")
        spent = zip(try row.texts("currencies"), try row.int8s("amounts")).map(Amount.init(currency:milliunits:))
    }
}

/// A page of the list of customers.
package struct CustomerListPage: Sendable, Hashable {
    /// The customers that the filter lets through, in the order of the bytes of their ids.
    package let customers: [CustomerSummary]
    /// The name to continue after; nil at the end.
    package let next: String?
}

extension LedgerAdmin {
    /// The most customers of an app that one page of the list looks at.
    package static let listedScanMax: Int32 = 2_000

    /// Returns the customers of an app after a name, at most `limit`. It looks at no more than `listedScanMax`, so that a
    /// rare filter costs no more than a page: such a page may be short, or empty, and still have a next one.
    package func customers(
        of bundleID: BundleID, _ filter: CustomerFilter, after: String, limit: Int
    ) async throws -> CustomerListPage {
        let rows = try await reads.query(
            Queries.listAdminCustomers,
            [
                .text(bundleID.text), .text(after), .text(filter.state?.rawValue), .text(filter.product),
                .int8(filter.spentMilliunits), .int4(Int32(clamping: limit)), .int4(Self.listedScanMax),
            ])
        let isMore = try rows.first?.bool("is_more") ?? false
        return CustomerListPage(
            customers: try rows.filter { try $0.isNull("name") == false }.map(CustomerSummary.init(row:)),
            next: isMore ? try rows.first?.textIfPresent("last_name") : nil)
    }

    /// Returns Apple's answers with these numbers as they came, at most `answersMax`.
    package func bodies(of observations: Set<Int64>) async throws -> [Int64: [UInt8]] {
        let rows = try await query(Queries.readAnswerBodies, .int8s(observations.sorted()), .int4(Self.bodiesMax))
        return Dictionary(try rows.map { (try $0.int8("observation_id"), try $0.bytea("body")) }) { first, _ in first }
    }

    /// The most answers of Apple that a page shows.
    private static let bodiesMax: Int32 = 10
}

extension LedgerAdmin {
    /// Returns at most `limit` customers whose id begins with `text`, or who have such a transaction or receipt.
    package func search(
        _ text: String, limit: Int
    ) async throws -> [(bundleID: BundleID, customer: String, createdAt: Instant)] {
        let prefix = text.replacing(#/[\\%_]/#) { "\\\($0.output)" } + "%"
        return try await reads.query(
            Queries.searchCustomers, [.text(prefix), .text(text), .int8(Int64(text)), .int4(Int32(clamping: limit))],
            mayTakeLong: true
        ).map { row in
            (try row.id("bundle_id"), try row.text("name"), try row.instant("created_at"))
        }
    }
}

/// A stretch of a subscription's timeline, as currently known.
package struct RecordedSpan: Sendable {
    package let originalTransactionID: OriginalTransactionID
    package let productID: ProductID
    /// The state, in the words of the schema `perennial`.
    package let state: String
    package let reason: String?
    package let entitled: Bool
    /// The flags of the stretch, such as `trial`.
    package let flags: [String]
    /// The start; nil if there is none.
    package let since: Instant?
    /// The end; nil if there is none.
    package let until: Instant?
}

/// A change, as the feed reports it.
package struct RecordedEvent: Sendable {
    package let kind: String
    package let originalTransactionID: OriginalTransactionID
    package let productID: ProductID
    /// The time of the change, by Apple's clock.
    package let occurredAt: Instant
    /// The time when the change was recorded, by the database's clock.
    package let recordedAt: Instant
}

extension LedgerAdmin {
    /// Returns the timelines of the subscriptions a customer owns, newest stretch first, at most `limit` stretches.
    package func timelines(app bundleID: BundleID, customer: String, limit: Int) async throws -> [RecordedSpan] {
        try await query(
            Queries.readTimelines, .text(bundleID.text), .text(customer), .int4(Int32(clamping: limit))
        ).map { row in
            RecordedSpan(
                originalTransactionID: try row.id("original_transaction_id"), productID: try row.id("product_id"),
                state: try row.text("state"), reason: try row.textIfPresent("reason"),
                entitled: try row.bool("entitled"), flags: try row.texts("flags"),
                since: try row.instantIfPresent("since"), until: try row.instantIfPresent("until"))
        }
    }

    /// Returns the events of everything a customer owns, newest first, at most `limit`.
    package func events(app bundleID: BundleID, customer: String, limit: Int) async throws -> [RecordedEvent] {
        try await query(
            Queries.readCustomerEvents, .text(bundleID.text), .text(customer), .int4(Int32(clamping: limit))
        ).map { row in
            RecordedEvent(
                kind: try row.text("kind"), originalTransactionID: try row.id("original_transaction_id"),
                productID: try row.id("product_id"), occurredAt: try row.instant("occurred_at"),
                recordedAt: try row.instant("recorded_at"))
        }
    }
}
