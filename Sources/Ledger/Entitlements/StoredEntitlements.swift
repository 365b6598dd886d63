import Postgres
import Subscriptions

/// What is stored about one customer, collected from the rows of `current_entitlements`.
struct StoredEntitlements {
    private let now: Int64
    /// All stored spans.
    let spans: [EntitlementSpan]
    private var ofSubscription: [Int64: EntitlementSource.Clocks] = [:]
    private var ofPurchase: [Int64: EntitlementSource.Clocks] = [:]

    /// Reads the rows of `count` customers; nil for a customer about whom nothing current is stored.
    static func read(_ rows: [Row], of count: Int) throws -> [StoredEntitlements?] {
        var stored = [StoredEntitlements?](repeating: nil, count: count)
        for row in rows {
            let place = Int(try row.int8("place")) - 1
            if stored[place] == nil { stored[place] = try StoredEntitlements(row) }
            try stored[place]?.addClocks(row)
        }
        return stored
    }

    private init(_ row: Row) throws {
        now = try row.timestamptz("now")
        spans = try row.composites("spans", "entitlement_span") { EntitlementSpan(&$0) }
    }

    private mutating func addClocks(_ row: Row) throws {
        guard let asOf = try row.timestamptzIfPresent("as_of"),
            let checkedAt = try row.timestamptzIfPresent("checked_at")
        else { return }
        let clocks = EntitlementSource.Clocks(asOf: asOf, checkedAt: checkedAt)
        if let subscription = try row.int8IfPresent("subscription_id") { ofSubscription[subscription] = clocks }
        if let purchase = try row.int8IfPresent("purchase_id") { ofPurchase[purchase] = clocks }
    }

    /// What holds now.
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
