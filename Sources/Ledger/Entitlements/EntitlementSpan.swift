import Postgres
import Subscriptions

/// What one source says of one entitlement for a stretch of time: `ledger.entitlement_span`. Instants are in
/// microseconds.
struct EntitlementSpan: Sendable, Hashable {
    /// The beginning.
    let starts: Int64
    /// The first instant after it; `Int64.max` for no end.
    let ends: Int64
    /// The order among sources: 1 what Apple or a running manual grant says, 2 provisional, 3 a manual grant that is
    /// over.
    let place: Int32
    let entitlement: String
    let granted: Bool
    /// When access ends unless something changes.
    let until: Int64?
    let productID: String?
    let state: String
    let reason: String?
    let environment: StoreEnvironment
    let basis: String
    /// Apple's expiry, where a subscription does not grant.
    let expiresAt: Int64?
    let subscriptionID: Int64?
    let purchaseID: Int64?
    /// When access ended, where it is not granted.
    let endedAt: Int64?
}

extension EntitlementSpan {
    /// Reads the fields in the order of the type; nil when one is missing.
    init?(_ fields: inout CompositeFields) {
        let (starts, ends, place) = (fields.timestamptz(), fields.timestamptz(), fields.int4())
        let (entitlement, granted, until) = (fields.text(), fields.bool(), fields.timestamptz())
        let (productID, state, reason) = (fields.text(), fields.text(), fields.text())
        let (environment, basis) = (fields.text().flatMap { StoreEnvironment(rawValue: $0) }, fields.text())
        let (expiresAt, subscriptionID, purchaseID) = (fields.timestamptz(), fields.int8(), fields.int8())
        _ = fields.int8()
        let endedAt = fields.timestamptz()
        guard let starts, let ends, let place, let entitlement, let granted, let state, let environment, let basis
        else {
            return nil
        }
        self.init(
            starts: starts, ends: ends, place: place, entitlement: entitlement, granted: granted, until: until,
            productID: productID, state: state, reason: reason, environment: environment, basis: basis,
            expiresAt: expiresAt, subscriptionID: subscriptionID, purchaseID: purchaseID, endedAt: endedAt)
    }

    /// Whether it applies at an instant.
    func holds(at microseconds: Int64) -> Bool { starts <= microseconds && microseconds < ends }
}
