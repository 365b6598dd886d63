import Foundation
import Hummingbird
import Ledger
import Subscriptions

/// `GET /v1/apps/{bundle}/customers/{id}/entitlements`: what a customer may use, at an instant, as known at another.
struct GetEntitlements: Sendable {
    let tracker: Tracker
    let apps: KnownApps

    func route(behind gate: Gate) -> Route {
        gate.route(.get, "/v1/apps/{bundle}/customers/{id}/entitlements", needs: .read) { visit in
            let customer = try visit.parameters.decoded("id")
            try Upload.requireCustomer(customer)
            let (time, knownAt) = (try visit.instant("at"), try visit.instant("known_at"))
            let now = Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000))
            let found = try await tracker.ledger.entitlements(
                app: visit.bundleID, customer: customer, at: time, knownAt: knownAt)
            if found.isEmpty { try await apps.require(visit.bundleID) }
            let lookup = EntitlementLookup(
                bundleID: visit.bundleID, customer: customer, time: time, knownAt: knownAt, now: now,
                speedup: tracker.options.speedup, entitlements: found)
            return lookup.response(ifNoneMatch: visit.request.headers[values: .ifNoneMatch])
        }
    }
}

extension Visit {
    /// PostgreSQL knows every instant between these; no receipt is older or lasts longer.
    private static let earliest = Instant(milliseconds: 0)
    private static let latest = Instant(milliseconds: 253_402_300_799_999)

    /// An instant PostgreSQL knows; nil for any other text.
    static func instant(_ text: String) -> Instant? {
        Instant(iso8601: text).flatMap { earliest <= $0 && $0 <= latest ? $0 : nil }
    }

    /// An instant of the query, ISO 8601 between 1970 and 9999; nil when it is not given.
    func instant(_ name: String) throws -> Instant? {
        guard let text = request.uri.queryParameters.get(name) else { return nil }
        guard let instant = Self.instant(text) else {
            throw Problem(
                .invalid, "The query's \(name) is not an instant between 1970 and 9999, like 2026-11-20T12:00:00Z.")
        }
        return instant
    }
}
