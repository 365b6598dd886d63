import Hummingbird
import HummingbirdCore
package import Logging
import Subscriptions
package import Tracking

/// The route of a lookup, layer by layer, each with all below it, for `Benchmarks/run lookups`. No server has these routes.
package enum LookupLadder {
    /// What each route adds to the one before it, and the path before the customer's id.
    package static let rungs = [
        ("our router and context", "/router/"), ("problems, the id and the path of the request", "/problems/"),
        ("counting the request, two readings of the clock", "/metrics/"), ("the key, its scope and the query", "/key/"),
        ("the app, the customer's id and instants", "/checks/\(app)/"), ("the app's terms", "/terms/\(app)/"),
        ("the read", "/read/\(app)/"), ("freshness, entity tag, JSON and headers", "/answer/\(app)/"),
    ]

    private static let app = "com.example.tracker"

    /// Answers until graceful shutdown.
    package static func serve(_ tracker: Tracker, port: Int, logger: Logger) async throws {
        let router = ListingRouter()
        let (registry, apps) = (MetricsRegistry(), KnownApps(tracker))
        let constant = EntitlementLookup(
            bundleID: BundleID(app), customer: "f0000001", time: nil, knownAt: nil,
            terms: try await apps.require(BundleID(app)),
            found: try await tracker.ledger.customers.entitlements(
                of: CustomerName(AppCustomerID("f0000001"), of: BundleID(app)))
        ).response(ifNoneMatch: [])
        router.get("/router/{id}") { _, _ in constant }
        router.group().add(middleware: ProblemMiddleware()).get("/problems/{id}") { _, _ in constant }
        let counted = router.group().add(
            middleware: ProblemMiddleware(counters: RequestCounters(registry: registry), servesAdmin: true))
        counted.get("/metrics/{id}") { _, _ in constant }
        let authenticator = APIKeyAuthenticator(keys: KeyCache { try await tracker.ledger.apps.key(withSecret: $0) })
        let keyed = KeyedRoutes(routes: counted, authenticator: authenticator)
        keyed.ofAnyApp(needing: .read, query: ["at", "known_at"]).get("/key/{id}") { _, _ in constant }
        let lookups = keyed.ofApp(needing: .read, query: ["at", "known_at"])
        let counters = LookupCounters(registry: registry)
        for rung in ["checks", "terms", "read", "answer"] {
            lookups.get("/\(rung)/{bundle}/{id}") { request, context in
                let customer = try context.parameters.decoded("id")
                try Upload.requireValidCustomerID(customer)
                let (time, knownAt) = (try request.instant("at"), try request.instant("known_at"))
                if rung == "checks" { return constant }
                let app = context.bundleID
                let terms = if let known = apps.known(app) { known } else { try await apps.require(app) }
                if rung == "terms" { return constant }
                let found = try await tracker.ledger.customers.entitlements(
                    of: CustomerName(AppCustomerID(customer), of: app), at: time, knownAt: knownAt)
                counters.count(found.source)
                if rung == "read" { return constant }
                return EntitlementLookup(
                    bundleID: app, customer: customer, time: time, knownAt: knownAt, terms: terms, found: found
                ).response(ifNoneMatch: request.headers[values: .ifNoneMatch])
            }
        }
        let responder = router.buildResponder()
        try await Application(
            responder: responder, server: HTTPServerBuilder { _ in Connections(responder: responder) },
            configuration: .init(address: .hostname("127.0.0.1", port: port), serverName: HTTPServer.name),
            logger: logger
        ).run()
    }
}
