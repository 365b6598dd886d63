import Postgres
import SQL
package import Subscriptions

extension LedgerApps {
    /// The number of subscriptions, and of purchases, searched in each environment for products that no catalog names.
    private static let thingsLookedThrough: Int32 = 1_000

    /// Returns the names of all entitlements that an app can grant: those of its catalog, and its product ids.
    package func knownEntitlements(of bundleID: BundleID) async throws -> [String] {
        try await query(Queries.knownEntitlements, [.text(bundleID.text), .int4(Self.thingsLookedThrough)])
            .map { try $0.text("name") }
    }

    /// Throws `invalid` for an entitlement that the app cannot grant, such as a misspelt one.
    ///
    /// The error ends with `advice`, which says what to do for a future entitlement.
    package func requireKnownEntitlement(_ name: String, of bundleID: BundleID, orElse advice: String) async throws {
        try ManualGrant.requireEntitlement(name)
        let known = try await knownEntitlements(of: bundleID)
        guard !known.contains(name) else { return }
        let hint = known.nearest(to: name).map { "; the nearest name is \($0)." } ?? "."
        throw LedgerError(
            .invalid, "No product of \(bundleID) grants the entitlement \(name)\(hint) \(advice)")
    }
}
