import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// The pages under `/admin`, rendered on the server without scripts, for people with a key of scope admin for every
/// app.
struct AdminSite: Sendable {
    let tracker: Tracker
    let keys: KeyCache
    let proxies: TrustedProxies
    let attempts = SignInAttempts()

    /// Adds every path of the pages. Only the files and the sign-in need no session.
    func addRoutes(to routes: RouterGroup<CallerContext>) {
        let site = routes.group().add(middleware: PageProblemMiddleware())
        for file in [AdminFile.style, .icon] { file.addRoute(to: site) }
        site.get("/", use: front)
        site.get(RouterPath(SignIn.path), use: signInForm)
        site.post("/admin/session", use: signIn)
        let pages = site.group().add(middleware: AdminAuthenticator(ledger: tracker.ledger))
            .group(context: AdminContext.self)
        pages.post("/admin/sign-out", use: signOut)
        pages.get("/admin", use: overview)
        pages.get("/admin/customers", use: customers)
        pages.get("/admin/customer", use: customer)
        pages.get(RouterPath(ActionPage.path), use: actForm)
        pages.post(RouterPath(ActionPage.path), use: act)
        pages.get(RouterPath(SupportPage.path), use: supportForm)
        pages.post(RouterPath(SupportPage.path), use: support)
        pages.get("/admin/retention", use: retention)
        pages.get("/admin/cohorts", use: cohorts)
        pages.get("/admin/trials", use: trials)
        pages.get("/admin/receipts/{id}", use: receipt)
        pages.post("/admin/receipts/{id}/check", use: checkReceipt)
        pages.get("/admin/deliveries/{id}", use: delivery)
        pages.post("/admin/deliveries/{id}/skip", use: skipDelivery)
        pages.get("/admin/incidents", use: incidents)
        pages.get("/admin/webhooks", use: webhooks)
        pages.get("/admin/webhooks/{id}", use: webhook)
        pages.post("/admin/webhooks/{id}", use: changeWebhook)
    }
}

extension AdminSite {
    /// `GET /`: where to go from here.
    private func front(_: Request, _: CallerContext) async throws -> Response {
        try AdminPage(title: "Perennial", template: "front", content: ()).response()
    }
}

extension Request {
    /// Returns a value of the query, or nil when it is absent or empty.
    func query(_ name: Substring) -> String? {
        uri.queryParameters[name].map(String.init).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns the app that the query names, or nil when it names none; throws `notFound` for one that is not in `apps`.
    func app(of apps: [App]) throws -> App? {
        guard let named = query("app") else { return nil }
        guard let app = apps.first(where: { $0.bundleID.text == named }) else {
            throw Problem(.notFound, "No app has the bundle id \(named).")
        }
        return app
    }
}
