import SQL
import Subscriptions

extension SubscriptionLedger {
    /// How many of an app's subscriptions, and of its purchases, are looked through for products that no catalog names.
    private static let thingsLookedThrough: Int32 = 1_000

    /// The names of all rights that an app can grant: its catalog's, and the ids of its products.
    package func knownEntitlements(of bundleID: BundleID) async throws -> [String] {
        try await query(Queries.knownEntitlements, [.text(bundleID.text), .int4(Self.thingsLookedThrough)])
            .map { try $0.text("name") }
    }

    /// Throws `invalid` for a right that the app cannot grant, as a misspelt one; `advice` says what to do about one to come.
    package func requireKnownEntitlement(_ name: String, of bundleID: BundleID, orElse advice: String) async throws {
        try HandGrant.requireEntitlement(name)
        let known = try await knownEntitlements(of: bundleID)
        guard !known.contains(name) else { return }
        let hint = known.nearest(to: name).map { "; the nearest name is \($0)." } ?? "."
        throw LedgerError(
            .invalid, "No product of \(bundleID) grants the entitlement \(name)\(hint) \(advice)")
    }
}
