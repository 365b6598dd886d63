import Postgres
import SQL
package import Subscriptions

/// A customer by the app operator's own id.
package struct CustomerName: Sendable, Hashable {
    package let bundleID: BundleID
    package let id: AppCustomerID

    package init(_ id: AppCustomerID, of bundleID: BundleID) { (self.bundleID, self.id) = (bundleID, id) }
}

/// What a customer may use, as one lookup found it.
package struct CustomerEntitlements: Sendable {
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
    package let now: Instant
    package let source: Source
}

extension LedgerCustomers {
    /// The most customers whose entitlements one transaction renews.
    private static let renewalsMax = 500

    /// Returns the entitlements of a customer at `time` as known at `knownAt`, now where nil; an unknown customer has
    /// none. A hot standby may lag; `fromPrimary` reads what was committed just now.
    package func entitlements(
        app bundleID: BundleID, customer: String, at time: Instant? = nil, knownAt: Instant? = nil,
        fromPrimary: Bool = false
    ) async throws -> [Entitlement] {
        try await entitlements(
            of: [CustomerName(AppCustomerID(customer), of: bundleID)], at: time, knownAt: knownAt,
            fromPrimary: fromPrimary)[0].entitlements
    }

    /// Returns the same of one customer, with its source, from where lookups read.
    nonisolated(nonsending) package func entitlements(
        of customer: CustomerName, at time: Instant? = nil, knownAt: Instant? = nil
    ) async throws -> CustomerEntitlements {
        let isNow = time == nil && knownAt == nil
        if isNow {
            let rows = try await reads.query(
                Queries.currentEntitlements, [.text(customer.bundleID.text), .text(customer.id.text)], isShared: true)
            if let stored = try StoredEntitlements(rows) { return stored.answer }
        }
        return try await fromHistory(
            of: [customer], at: time, knownAt: knownAt, as: isNow ? .computed : .history, fromPrimary: false)[0]
    }

    /// Looks up a customer who does not exist by a key that does not: throws where the account may not read what lookups
    /// need, or where the primary does not answer within `limit`.
    package func requireLookups(within limit: Duration) async throws {
        _ = try await database.query(Statement(Queries.findKey), [.bytea([])], within: limit)
        let customer: [Parameter] = [.texts([""]), .texts([""])]
        _ = try await database.query(Statement(Queries.currentEntitlements), customer, within: limit)
    }

    /// Returns the same of many customers, in the order of `customers`; a customer may be named twice.
    package func entitlements(
        of customers: [CustomerName], at time: Instant? = nil, knownAt: Instant? = nil, fromPrimary: Bool = false
    ) async throws -> [CustomerEntitlements] {
        guard time == nil, knownAt == nil else {
            return try await fromHistory(
                of: customers, at: time, knownAt: knownAt, as: .history, fromPrimary: fromPrimary)
        }
        let rows = try await read(Queries.currentEntitlements, Self.parameters(customers), fromPrimary: fromPrimary)
        var found = try StoredEntitlements.read(rows, of: customers.count, onlyNow: true).map { $0?.answer }
        let missing = found.indices.filter { found[$0] == nil }
        if !missing.isEmpty {
            let computed = try await fromHistory(
                of: missing.map { customers[$0] }, at: nil, knownAt: nil, as: .computed, fromPrimary: fromPrimary)
            for (place, answer) in zip(missing, computed) { found[place] = answer }
        }
        return found.compactMap(\.self)
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
            if found[place] == nil { found[place] = CustomerEntitlements(now: try row.instant("now"), source: source) }
            guard try row.isNull("entitlement") == false else { continue }
            found[place]?.entitlements.append(try Entitlement(row: row))
        }
        return found.compactMap(\.self)
    }

    private static func parameters(_ customers: [CustomerName]) -> [Parameter] {
        [.texts(customers.map(\.bundleID.text)), .texts(customers.map(\.id.text))]
    }

    /// Renews outdated entitlements that no other worker renews, in one transaction. Returns whether more may be left.
    package func renewEntitlements() async throws -> Bool {
        try await database.transaction { transaction in
            let outdated = try transaction.query(
                Queries.lockOutdatedEntitlements, .int4(Int32(Self.renewalsMax))
            ).map { try $0.int8("customer_id") }
            guard !outdated.isEmpty else { return false }
            try transaction.query(Queries.storeEntitlements, .int8s(outdated))
            return outdated.count == Self.renewalsMax
        }
    }
}

/// What is stored about one customer, collected from the rows of `current_entitlements`.
struct StoredEntitlements {
    private let now: Int64
    /// All stored spans, or those that hold now.
    private(set) var spans: [EntitlementSpan] = []
    private var ofSubscription: [Int64: EntitlementSource.Clocks] = [:]
    private var ofPurchase: [Int64: EntitlementSource.Clocks] = [:]

    /// Reads the rows of `count` customers, with `onlyNow` only the spans of now; nil where nothing current is stored.
    static func read(_ rows: [Row], of count: Int, onlyNow: Bool = false) throws -> [StoredEntitlements?] {
        var stored = [StoredEntitlements?](repeating: nil, count: count)
        for row in rows {
            let place = Int(try row.int8("place")) - 1
            if stored[place] == nil { stored[place] = try StoredEntitlements(row, onlyNow: onlyNow) }
            try stored[place]?.addClocks(row)
        }
        return stored
    }

    /// Reads the rows of one customer, without the spans that do not hold now; nil where nothing current is stored.
    init?(_ rows: [Row]) throws {
        guard let first = rows.first else { return nil }
        try self.init(first, onlyNow: true)
        for row in rows { try addClocks(row) }
    }

    private init(_ row: Row, onlyNow: Bool) throws {
        let now = try row.timestamptz("now")
        var found: [EntitlementSpan] = []
        try row.eachComposite("spans", "entitlement_span") { fields in
            guard let starts = fields.timestamptz(), let ends = fields.timestamptz() else { return false }
            guard !onlyNow || (starts <= now && now < ends) else { return true }
            guard let span = EntitlementSpan(&fields, from: starts, until: ends) else { return false }
            found.append(span)
            return true
        }
        self.now = now
        spans = found
    }

    private mutating func addClocks(_ row: Row) throws {
        guard let asOf = try row.timestamptzIfPresent("as_of"),
            let checkedAt = try row.timestamptzIfPresent("checked_at")
        else { return }
        let clocks = EntitlementSource.Clocks(asOf: asOf, checkedAt: checkedAt)
        if let subscription = try row.int8IfPresent("subscription_id") { ofSubscription[subscription] = clocks }
        if let purchase = try row.int8IfPresent("purchase_id") { ofPurchase[purchase] = clocks }
    }

    var answer: CustomerEntitlements {
        CustomerEntitlements(entitlements: entitlements(at: now), now: Instant(microseconds: now), source: .stored)
    }

    /// Returns the winner of each entitlement at an instant, in microseconds.
    func entitlements(at microseconds: Int64) -> [Entitlement] {
        let sources = spans.filter { $0.holds(at: microseconds) }.map { span in
            EntitlementSource(
                span: span,
                clocks: span.subscriptionID.flatMap { ofSubscription[$0] }
                    ?? span.purchaseID.flatMap { ofPurchase[$0] })
        }
        return sources.winners.map(Entitlement.init(from:))
    }
}
