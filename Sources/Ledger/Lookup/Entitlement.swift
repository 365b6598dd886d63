import Postgres
import SQL
package import Subscriptions

/// One entitlement of one customer: whether it is granted, until when, why, and how fresh the answer is.
package struct Entitlement: Sendable, Hashable {
    /// The entitlement's name.
    package let name: String
    /// Whether the customer has it.
    package let granted: Bool
    /// When it ends unless something changes; nil when it does not end or is not granted.
    package let until: Instant?
    /// The product that grants or granted it; nil for a manual grant.
    package let productID: ProductID?
    /// The state of the subscription behind it.
    package let state: String?
    /// The reason for that state.
    package let reason: String?
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// The basis of the answer: `verified`, Apple's answer; `provisional`, the operator's word until Apple is asked; or
    /// `by_hand`, a person's decision.
    package let basis: String
    /// Apple's clock of the evidence; nil for a provisional entitlement and a manual grant, and where the newest answer
    /// is later than the instant asked about.
    package private(set) var asOf: Instant?
    /// When the last verified answer came; nil where `asOf` is nil.
    package private(set) var checkedAt: Instant?
    /// Apple's expiry of the last period, where a subscription does not grant the entitlement.
    package let expiresAt: Instant?
}

/// A customer by the app operator's own id.
package struct CustomerName: Sendable, Hashable {
    /// The app.
    package let bundleID: BundleID
    /// The operator's own id of the customer.
    package let id: AppCustomerID

    /// Creates a name.
    package init(_ id: AppCustomerID, of bundleID: BundleID) {
        self.bundleID = bundleID
        self.id = id
    }
}

extension LedgerCustomers {
    /// Returns the entitlements of a customer at `time` as known at `knownAt`, now where nil; an unknown customer has
    /// none.
    ///
    /// A hot standby may lag; `fromPrimary` reads what was committed just now.
    package func entitlements(
        app bundleID: BundleID, customer: String, at time: Instant? = nil, knownAt: Instant? = nil,
        fromPrimary: Bool = false
    ) async throws -> [Entitlement] {
        try await entitlements(
            of: [CustomerName(AppCustomerID(customer), of: bundleID)], at: time, knownAt: knownAt,
            fromPrimary: fromPrimary)[0]
    }

    /// Returns the same for many customers in one statement, in the order of `customers`; a customer may be named
    /// twice.
    package func entitlements(
        of customers: [CustomerName], at time: Instant? = nil, knownAt: Instant? = nil, fromPrimary: Bool = false
    ) async throws -> [[Entitlement]] {
        let parameters: [Parameter] = [
            .texts(customers.map(\.bundleID.text)), .texts(customers.map(\.id.text)), .instant(time), .instant(knownAt),
        ]
        let rows =
            fromPrimary
            ? try await query(Queries.entitlements, parameters)
            : try await reads.query(Queries.entitlements, parameters)
        var found = [[Entitlement]](repeating: [], count: customers.count)
        for row in rows { found[Int(try row.int8("place")) - 1].append(try Entitlement(row: row)) }
        return found
    }
}

extension Entitlement {
    /// Returns the same entitlement after Apple confirmed it again.
    func checked(_ check: RightCheck) -> Entitlement {
        var entitlement = self
        (entitlement.asOf, entitlement.checkedAt) = (check.asOf, check.checkedAt)
        return entitlement
    }

    init(row: Row) throws {
        name = try row.text("entitlement")
        granted = try row.bool("granted")
        until = try row.instantIfPresent("until")
        productID = try row.textIfPresent("product_id").map { ProductID($0) }
        state = try row.textIfPresent("state")
        reason = try row.textIfPresent("reason")
        environment = try row.word("environment")
        basis = try row.text("basis")
        asOf = try row.instantIfPresent("as_of")
        checkedAt = try row.instantIfPresent("checked_at")
        expiresAt = try row.instantIfPresent("expires_at")
    }
}
