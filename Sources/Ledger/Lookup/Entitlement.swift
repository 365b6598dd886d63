import Postgres
import SQL
import Subscriptions

/// One right of one customer: whether it is granted, until when, why, and how fresh the answer is.
package struct Entitlement: Sendable, Hashable {
    /// The right's name.
    package let name: String
    /// Whether the customer has it.
    package let granted: Bool
    /// When it ends unless something changes; nil when it does not end or is not granted.
    package let until: Instant?
    /// The product that grants or granted it; nil when it was given by hand.
    package let productID: ProductID?
    /// The state of the subscription behind it.
    package let state: String?
    /// Why that state.
    package let reason: String?
    /// Apple's environment.
    package let environment: StoreEnvironment
    /// What the answer rests on: `verified`, Apple's answer, `provisional`, the operator's word until Apple is asked, or
    /// `by_hand`, a person's decision.
    package let basis: String
    /// Apple's clock of the evidence; nil while provisional and by hand, and where the newest answer is later than what was
    /// asked for.
    package private(set) var asOf: Instant?
    /// When the last verified answer came; nil where `asOf` is.
    package private(set) var checkedAt: Instant?
    /// Apple's expiry of the last period, where a subscription does not grant it.
    package let expiresAt: Instant?
}

/// A customer as an app's operator calls them.
package struct CustomerName: Sendable, Hashable {
    /// The app.
    package let bundleID: BundleID
    /// The operator's own id of the customer.
    package let id: AppCustomerID

    /// A name.
    package init(_ id: AppCustomerID, of bundleID: BundleID) {
        self.bundleID = bundleID
        self.id = id
    }
}

extension SubscriptionLedger {
    /// What a customer may use at `time` as known at `knownAt`, now where nil; a customer nobody knows has nothing.
    ///
    /// A hot standby may lag; `fromPrimary` sees what was committed just now.
    package func entitlements(
        app bundleID: BundleID, customer: String, at time: Instant? = nil, knownAt: Instant? = nil,
        fromPrimary: Bool = false
    ) async throws -> [Entitlement] {
        try await entitlements(
            of: [CustomerName(AppCustomerID(customer), of: bundleID)], at: time, knownAt: knownAt,
            fromPrimary: fromPrimary)[0]
    }

    /// The same for many customers in one statement, in the order of `customers`; one may be named twice.
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
    /// The same after Apple said so again.
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
