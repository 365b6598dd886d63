import Postgres
package import Subscriptions

/// One entitlement of one customer: whether it is granted, until when, why, and how fresh the answer is.
package struct Entitlement: Sendable, Hashable {
    package let name: String
    package let granted: Bool
    /// When it ends unless something changes; nil when it does not end or is not granted.
    package let until: Instant?
    /// The product that grants or granted it; nil for a manual grant.
    package let productID: ProductID?
    package let state: String?
    package let reason: String?
    package let environment: StoreEnvironment
    /// `verified`: Apple's answer; `provisional`: the operator's word until Apple is asked; `by_hand`: a manual grant.
    package let basis: String
    /// Apple's clock of the evidence; nil where there is none, or the newest is later than the instant asked about.
    package let asOf: Instant?
    /// When the last verified answer came; nil where `asOf` is nil.
    package let checkedAt: Instant?
    /// Apple's expiry of the last period, where a subscription does not grant the entitlement.
    package let expiresAt: Instant?
    /// When it ended, where it is not granted.
    package let endedAt: Instant?
}

extension Entitlement {
    init(row: Row) throws {
        name = try row.text("entitlement")
        granted = try row.bool("granted")
        until = try row.instantIfPresent("until")
        productID = try row.idIfPresent("product_id")
        state = try row.textIfPresent("state")
        reason = try row.textIfPresent("reason")
        environment = try row.word("environment")
        basis = try row.text("basis")
        asOf = try row.instantIfPresent("as_of")
        checkedAt = try row.instantIfPresent("checked_at")
        expiresAt = try row.instantIfPresent("expires_at")
        endedAt = try row.instantIfPresent("ended_at")
    }

    init(from source: EntitlementSource) {
        let span = source.span
        name = span.entitlement
        granted = span.granted
        until = span.until.map(Instant.init(microseconds:))
        productID = span.productID.map { ProductID($0) }
        state = span.state
        reason = span.reason
        environment = span.environment
        basis = span.basis
        asOf = source.clocks.map { Instant(microseconds: $0.asOf) }
        checkedAt = source.clocks.map { Instant(microseconds: $0.checkedAt) }
        expiresAt = span.expiresAt.map(Instant.init(microseconds:))
        endedAt = span.endedAt.map(Instant.init(microseconds:))
    }
}

/// A source of an entitlement at one instant, with its clocks.
struct EntitlementSource: Sendable {
    /// The clocks of a subscription or one-time purchase, in microseconds.
    struct Clocks: Sendable, Hashable {
        let asOf: Int64
        let checkedAt: Int64
    }

    let span: EntitlementSpan
    /// Nil where no answer of Apple is behind the source.
    let clocks: Clocks?

    /// Whether it wins against another source of the same entitlement: the same order as in `ledger.entitlements`.
    func precedes(_ other: EntitlementSource) -> Bool {
        let (mine, its) = (span, other.span)
        if mine.place != its.place { return mine.place < its.place }
        if mine.granted != its.granted { return mine.granted }
        if mine.environment != its.environment { return mine.environment == .production }
        if mine.until != its.until { return precedesDescending(mine.until, its.until) }
        if mine.basis != its.basis { return mine.basis > its.basis }
        // What goes on before what only waits for its replacement.
        if let order = orderInBytes(mine.state, its.state) { return order }
        if clocks?.checkedAt != other.clocks?.checkedAt {
            return precedesDescending(clocks?.checkedAt, other.clocks?.checkedAt)
        }
        if let order = orderInBytes(mine.productID, its.productID) { return order }
        if mine.subscriptionID != its.subscriptionID {
            return precedesAscending(mine.subscriptionID, its.subscriptionID)
        }
        return precedesAscending(mine.purchaseID, its.purchaseID)
    }

    /// Descending with nil first, as in SQL.
    private func precedesDescending(_ mine: Int64?, _ its: Int64?) -> Bool {
        guard let mine else { return its != nil }
        return its.map { mine > $0 } ?? false
    }

    /// Ascending with nil last, as in SQL.
    private func precedesAscending(_ mine: Int64?, _ its: Int64?) -> Bool {
        guard let its else { return mine != nil }
        return mine.map { $0 < its } ?? false
    }

    private func orderInBytes(_ mine: String?, _ its: String?) -> Bool? {
        guard let mine, let its else { return mine == nil && its == nil ? nil : mine != nil }
        return mine.utf8.elementsEqual(its.utf8) ? nil : mine.precedesInBytes(its)
    }
}

extension [EntitlementSource] {
    /// The winning source of each entitlement, in the order of their names.
    var winners: [EntitlementSource] {
        guard count > 1 else { return self }
        let sorted = sorted { one, other in
            let (name, its) = (one.span.entitlement, other.span.entitlement)
            return name.utf8.elementsEqual(its.utf8) ? one.precedes(other) : name.precedesInBytes(its)
        }
        return sorted.indices.compactMap { index in
            guard index > 0 else { return sorted[index] }
            let (name, before) = (sorted[index].span.entitlement, sorted[index - 1].span.entitlement)
            return name.utf8.elementsEqual(before.utf8) ? nil : sorted[index]
        }
    }
}

extension String {
    /// The order of PostgreSQL's collation "C", byte by byte. Swift's own takes two spellings of one text for equal.
    fileprivate func precedesInBytes(_ other: String) -> Bool { utf8.lexicographicallyPrecedes(other.utf8) }
}

/// What one source says of one entitlement for a stretch of time: `ledger.entitlement_span`. Instants in microseconds.
struct EntitlementSpan: Sendable, Hashable {
    let starts: Int64
    /// The first instant after it; `Int64.max` for no end.
    let ends: Int64
    /// The order among sources: 1 what Apple or a running manual grant says, 2 provisional, 3 an ended manual grant.
    let place: Int32
    let entitlement: String
    let granted: Bool
    let until: Int64?
    let productID: String?
    let state: String
    let reason: String?
    let environment: StoreEnvironment
    let basis: String
    let expiresAt: Int64?
    let subscriptionID: Int64?
    let purchaseID: Int64?
    let endedAt: Int64?
}

extension EntitlementSpan {
    /// Reads the fields behind the first two in the order of the type; nil when one is missing.
    init?(_ fields: inout CompositeFields, from starts: Int64, until ends: Int64) {
        let place = fields.int4()
        let (entitlement, granted, until) = (fields.text(), fields.bool(), fields.timestamptz())
        let (productID, state, reason) = (fields.text(), fields.text(), fields.text())
        let (environment, basis) = (fields.text().flatMap { StoreEnvironment(rawValue: $0) }, fields.text())
        let (expiresAt, subscriptionID, purchaseID) = (fields.timestamptz(), fields.int8(), fields.int8())
        _ = fields.int8()
        let endedAt = fields.timestamptz()
        guard let place, let entitlement, let granted, let state, let environment, let basis else { return nil }
        self.init(
            starts: starts, ends: ends, place: place, entitlement: entitlement, granted: granted, until: until,
            productID: productID, state: state, reason: reason, environment: environment, basis: basis,
            expiresAt: expiresAt, subscriptionID: subscriptionID, purchaseID: purchaseID, endedAt: endedAt)
    }

    func holds(at microseconds: Int64) -> Bool { starts <= microseconds && microseconds < ends }
}
