import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `GET /v1/apps/{bundle}/customers/{id}/entitlements`: a customer's entitlements at one instant, as known at another.
struct GetEntitlements: Sendable {
    let tracker: Tracker
    let apps: KnownApps
    let counters: LookupCounters

    func addRoute(to routes: RouterGroup<KeyContext>) {
        let lookups = routes.ofApp(needing: .read, query: ["at", "known_at"])
        lookups.get("/v1/apps/{bundle}/customers/{id}/entitlements") { request, context in
            let customer = try context.parameters.decoded("id")
            try Upload.requireValidCustomerID(customer)
            let (time, knownAt) = (try request.instant("at"), try request.instant("known_at"))
            let app = try await apps.require(context.bundleID)
            let found = try await tracker.ledger.customers.entitlements(
                of: [CustomerName(AppCustomerID(customer), of: context.bundleID)], at: time, knownAt: knownAt)[0]
            counters.count(found.source)
            return EntitlementLookup(
                bundleID: context.bundleID, customer: customer, time: time, knownAt: knownAt,
                terms: tracker.terms(of: app), found: found
            ).response(ifNoneMatch: request.headers[values: .ifNoneMatch])
        }
    }
}
