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

    /// Creates a filter.
    package init(state: State? = nil, product: String? = nil, spentMilliunits: Int64? = nil) {
        self.state = state
        self.product = product
        self.spentMilliunits = spentMilliunits
    }
}

/// A customer in the list of the pages.
package struct CustomerSummary: Sendable, Hashable {
    /// An amount in one currency.
    package struct Amount: Sendable, Hashable {
        /// The currency.
        package let currency: String
        /// In thousandths of the currency's unit.
        package let milliunits: Int64
    }

    /// The operator's own id.
    package let customer: String
    /// When the customer was created.
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
        let rows = try await query(
            Queries.readAnswerBodies, [.int8s(observations.sorted()), .int4(Self.bodiesMax)])
        return Dictionary(try rows.map { (try $0.int8("observation_id"), try $0.bytea("body")) }) { first, _ in first }
    }

    /// The most answers of Apple that a page shows.
    private static let bodiesMax: Int32 = 10
}

extension CustomerSummary {
    fileprivate init(row: Row) throws {
        customer = try row.text("name")
        createdAt = try row.instant("created_at")
        (states, reasons) = (try row.texts("states"), try row.texts("reasons"))
        products = try row.texts("products")
        expiresAt = try row.instantIfPresent("expires_at")
        spent = zip(try row.texts("currencies"), try row.int8s("amounts")).map(Amount.init(currency:milliunits:))
    }
}
