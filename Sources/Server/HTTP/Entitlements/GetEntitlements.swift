import Foundation
import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `GET /v1/apps/{bundle}/customers/{id}/entitlements`: a customer's entitlements at one instant, as known at another.
struct GetEntitlements: Sendable {
    static let path = "/v1/apps/{bundle}/customers/{id}/entitlements"

    let tracker: Tracker
    let apps: KnownApps
    let rights: RightsLookup
    private let present: JointLookup<Rights>

    /// Creates a route over the ledger of `tracker`.
    init(tracker: Tracker, apps: KnownApps, rights: RightsLookup) {
        self.tracker = tracker
        self.apps = apps
        self.rights = rights
        present = JointLookup(by: rights.rights)
    }

    func addRoute(to routes: RouterGroup<KeyContext>) {
        routes.ofApp(needing: .read, query: ["at", "known_at"]).get(RouterPath(Self.path)) { request, context in
            let customer = try context.parameters.decoded("id")
            try Upload.requireValidCustomerID(customer)
            let (time, knownAt) = (try request.instant("at"), try request.instant("known_at"))
            let now = Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000))
            let name = CustomerName(AppCustomerID(customer), of: context.bundleID)
            let app = try await apps.require(context.bundleID)
            let rights =
                time == nil && knownAt == nil
                ? try await presentRights(of: name)
                : try await tracker.ledger.customers.rights(of: [name], at: time, knownAt: knownAt)[0]
            let lookup = EntitlementLookup(
                bundleID: context.bundleID, customer: customer, time: time, knownAt: knownAt, now: now,
                terms: tracker.terms(of: app), rights: rights)
            return lookup.answer(ifNoneMatch: request.headers[values: .ifNoneMatch]).response
        }
    }

    private func presentRights(of customer: CustomerName) async throws -> Rights {
        if let remembered = rights.remembered(of: customer) { return remembered }
        return try await present.answer(about: customer)
    }
}
