import Postgres
import SQL
package import Subscriptions

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

/// What a customer may use, as one lookup found it.
package struct CustomerEntitlements: Sendable {
    /// Where the answer comes from.
    package enum Source: String, Sendable, CaseIterable {
        /// What the last change stored about the customer.
        case stored
        /// Computed, because nothing current is stored.
        case computed
        /// The history, for another instant than now.
        case history
    }

    /// The entitlements, in the order of their names; none for an unknown customer.
    package var entitlements: [Entitlement] = []
    /// The database's clock at the lookup.
    package let now: Instant
    /// Where they come from.
    package let source: Source
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
            fromPrimary: fromPrimary)[0].entitlements
    }

    /// Returns the same for many customers, in the order of `customers`; a customer may be named twice.
    package func entitlements(
        of customers: [CustomerName], at time: Instant? = nil, knownAt: Instant? = nil, fromPrimary: Bool = false
    ) async throws -> [CustomerEntitlements] {
        guard time == nil, knownAt == nil else {
            return try await fromHistory(
                of: customers, at: time, knownAt: knownAt, as: .history, fromPrimary: fromPrimary)
        }
        var found = try await stored(of: customers, fromPrimary: fromPrimary)
        let missing = found.indices.filter { found[$0] == nil }
        if !missing.isEmpty {
            let computed = try await fromHistory(
                of: missing.map { customers[$0] }, at: nil, knownAt: nil, as: .computed, fromPrimary: fromPrimary)
            for (place, answer) in zip(missing, computed) { found[place] = answer }
        }
        return found.compactMap(\.self)
    }

    /// Returns what is stored; nil for a customer about whom nothing current is stored, and for an unknown one.
    private func stored(
        of customers: [CustomerName], fromPrimary: Bool
    ) async throws -> [CustomerEntitlements?] {
        let rows =
            customers.count == 1
            ? try await read(
                Queries.currentEntitlements, [.text(customers[0].bundleID.text), .text(customers[0].id.text)],
                fromPrimary: fromPrimary)
            : try await read(
                Queries.currentEntitlementsOfMany, Self.parameters(customers), fromPrimary: fromPrimary)
        return try StoredEntitlements.read(rows, of: customers.count).map { $0?.answer }
    }

    private func fromHistory(
        of customers: [CustomerName], at time: Instant?, knownAt: Instant?, as source: CustomerEntitlements.Source,
        fromPrimary: Bool
    ) async throws -> [CustomerEntitlements] {
        let rows = try await read(
            Queries.entitlements, Self.parameters(customers) + [.instant(time), .instant(knownAt)],
            fromPrimary: fromPrimary)
        var found = [CustomerEntitlements?](repeating: nil, count: customers.count)
        for row in rows {
            let place = Int(try row.int8("place")) - 1
            if found[place] == nil {
                found[place] = CustomerEntitlements(now: try row.instant("now"), source: source)
            }
            guard try row.isNull("entitlement") == false else { continue }
            found[place]?.entitlements.append(try Entitlement(row: row))
        }
        return found.compactMap(\.self)
    }

    private func read(_ file: SQLFile, _ parameters: [Parameter], fromPrimary: Bool) async throws -> [Row] {
        fromPrimary ? try await query(file, parameters) : try await reads.query(file, parameters)
    }

    private static func parameters(_ customers: [CustomerName]) -> [Parameter] {
        [.texts(customers.map(\.bundleID.text)), .texts(customers.map(\.id.text))]
    }
}
