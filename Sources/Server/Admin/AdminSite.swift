import Hummingbird
import Logging
import Mustache
import Subscriptions
import Tracking

/// The pages under `/admin`, rendered here without scripts, for people with a key of scope admin for every app.
struct AdminSite: Sendable {
    let tracker: Tracker
    let keys: KeyCache
    let proxies: TrustedProxies
    let attempts = SignInAttempts()

    /// Adds every path of the pages. Only the files and the sign-in need no session.
    func addRoutes(to routes: RouterGroup<CallerContext>) {
        let site = routes.group().add(middleware: PageProblemMiddleware())
        site.addFile("/admin/style.css", type: "text/css; charset=utf-8", EmbeddedFiles.styleCss, cachedSeconds: 300)
        site.addFile("/admin/icon.svg", type: "image/svg+xml", EmbeddedFiles.iconSvg, cachedSeconds: 300)
        site.get("/") { _, _ in try AdminPage(title: "Perennial", template: "front", content: ()).response() }
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

/// A running session and the form that its browser sent. Every request's context has room for one, so it is a reference.
final class AdminVisit: Sendable {
    let session: AdminSession
    /// The form, with the session's token; nil for a request without one.
    let form: AdminForm?

    init(session: AdminSession, form: AdminForm?) {
        self.session = session
        self.form = form
    }
}

/// The context of a request with a running session, and with the form if it sent one.
struct AdminContext: ChildRequestContext {
    var coreContext: CoreRequestContextStorage
    let session: AdminSession
    let form: AdminForm?

    /// Creates the context of a request that `AdminAuthenticator` passed. Throws a problem for any other.
    init(context: CallerContext) throws {
        guard let visit = context.visit else { throw Problem(.unauthenticated, "Sign in at \(SignIn.path).") }
        coreContext = context.coreContext
        session = visit.session
        form = visit.form
    }

    /// Returns a page of the session as a response. A notice is the result of the last action, in one sentence.
    func page(_ title: String, _ template: String, _ content: Any, notice: String? = nil) throws -> Response {
        try AdminPage(title: title, template: template, content: content, session: session, notice: notice).response()
    }
}

/// Middleware that admits a request with a running session, and notes it in the context; others get the sign-in.
///
/// It accepts a form only from our own pages, with the session's own token. An error's page has the session's menu.
struct AdminAuthenticator: RouterMiddleware {
    let ledger: SubscriptionLedger

    func handle(
        _ request: Request, context: CallerContext, next: (Request, CallerContext) async throws -> Response
    ) async throws -> Response {
        let form = [.get, .head].contains(request.method) ? nil : try await AdminForm(request)
        guard let secret = request.sessionSecret, let session = try await ledger.admin.session(withSecret: secret)
        else { return .redirect(to: SignIn.path(leadingTo: request)) }
        var context = context
        context.visit = AdminVisit(session: session, form: form)
        do {
            try form?.requireToken(of: session)
            return try await next(request, context)
        } catch {
            return try AdminPage.response(telling: error, session: session, context)
        }
    }
}

/// Middleware that answers every error with a page, and gives every response the headers of a page.
struct PageProblemMiddleware: RouterMiddleware {
    func handle(
        _ request: Request, context: CallerContext, next: (Request, CallerContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context).asAdminPage
        } catch {
            return try AdminPage.response(telling: error, session: nil, context).asAdminPage
        }
    }
}

/// A page: its content within the frame that every page has.
struct AdminPage {
    /// The heading and the window's title.
    let title: String
    let template: String
    let content: Any
    /// The visitor's session; nil for a visitor who is not signed in.
    var session: AdminSession?
    /// The result of the visitor's last action, in one sentence.
    var notice: String?

    private struct Place {
        let title, path: String
        let isHere: Bool
    }

    /// Returns the page as a response. Throws when a template cannot be read or is missing.
    func response(status: HTTPResponse.Status = .ok) throws -> Response {
        let library = try AdminTemplates.library.get()
        var frame: [String: Any] = ["title": title, "places": places]
        frame["content"] = library.render(content, withTemplate: template)
        frame["formToken"] = session?.formToken
        frame["notice"] = notice
        guard frame["content"] != nil, let page = library.render(frame, withTemplate: "layout") else {
            throw Problem(.failed, "The page has no template \(template).")
        }
        return Response(
            status: status, headers: [.contentType: "text/html; charset=utf-8"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: page.runnableHere)))
    }

    private var places: [Place] {
        guard session != nil else { return [] }
        return [
            ("Overview", "/admin"), ("Customers", "/admin/customers"), ("Retention", "/admin/retention"),
            ("Cohorts", "/admin/cohorts"), ("Trials", "/admin/trials"), ("Incidents", "/admin/incidents"),
            ("Webhooks", "/admin/webhooks"),
        ].map { Place(title: $0, path: $1, isHere: $0 == title) }
    }
}

private enum AdminTemplates {
    static let library = Result {
        MustacheLibrary(templates: try EmbeddedFiles.templates.mapValues { try MustacheTemplate(string: $0) })
    }
}

extension AdminPage {
    /// Returns the page that shows an error. Details that a visitor must not know stay in the log.
    static func response(telling error: any Error, session: AdminSession?, _ context: CallerContext) throws -> Response
    {
        let problem = Problem(telling: error)
        if problem.kind == .failed {
            context.logger.error("a page failed: \(error)", metadata: ["request_id": "\(context.requestID)"])
        }
        return try response(telling: problem, session: session)
    }

    static func response(telling problem: Problem, session: AdminSession? = nil) throws -> Response {
        var page = try AdminPage(
            title: problem.kind.title, template: "error", content: ["sentence": problem.detail], session: session
        ).response(status: problem.kind.status)
        for field in problem.headers where page.headers[field.name] == nil { page.headers.append(field) }
        return page
    }
}

/// The fields of a form as a browser sends them.
struct AdminForm: Sendable {
    /// The largest form, in bytes. Ours have a few hundred.
    static let bytesMax = 16 * 1024
    /// How long a form may take to arrive, in seconds. A browser sends it at once.
    static let secondsMax = 10.0

    private let fields: [String: String]

    /// Reads the form of a request. Throws a problem for one that a page of another site sent, and for one whose fields are
    /// no text or have a NUL, where PostgreSQL's text would end.
    init(_ request: Request) async throws {
        try request.requireOwnPage()
        let limits = ServerLimits().narrowed(bytesMax: Self.bytesMax, secondsMax: Self.secondsMax)
        let body = try await limits.body(of: request)
        let read = try? URLEncodedFormDecoder().decode([String: String].self, from: String(buffer: body))
        guard let read, !read.values.contains(where: { $0.utf8.contains(0) }) else {
            throw Problem(.invalid, "The form is not percent-encoded text without a NUL.")
        }
        fields = read
    }

    /// Returns a field; empty when it is absent.
    subscript(_ name: String) -> String { fields[name] ?? "" }

    func requireToken(of session: AdminSession) throws {
        guard self["form_token"].isSecret(session.formToken) else {
            throw Problem(.forbidden, "The form is from another session; go back, reload the page and try again.")
        }
    }
}

extension String {
    /// Returns whether this is the secret. The comparison's duration reveals nothing about its characters.
    func isSecret(_ secret: String) -> Bool {
        let (mine, other) = (Array(utf8), Array(secret.utf8))
        guard mine.count == other.count, !other.isEmpty else { return false }
        return zip(mine, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

extension Response {
    /// The same response with the headers of every page: the browser stores nothing, runs no script and loads nothing
    /// from other sites.
    var asAdminPage: Response {
        var page = self
        for field in Self.adminHeaders where page.headers[field.name] == nil { page.headers[field.name] = field.value }
        return page
    }

    private static let adminHeaders: HTTPFields = [
        .contentSecurityPolicy:
            "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; "
            + "base-uri 'none'",
        .xContentTypeOptions: "nosniff",
        .cacheControl: "no-store",
        // With `no-referrer`, a browser would hide from us that our own page sent a form.
        .referrerPolicy: "same-origin",
    ]
}

extension Request {
    func requireOwnPage() throws {
        let isOwn =
            if let site = headers[.fetchSite] {
                site == "same-origin" || site == "none"
            } else if let origin = headers[.origin] {
                head.authority.map { origin == "http://\($0)" || origin == "https://\($0)" } ?? false
            } else {
                true
            }
        guard isOwn else { throw Problem(.forbidden, "The form was sent by the page of another site.") }
    }

    /// Whether the browser connects to this machine itself, without TLS.
    var isLoopback: Bool {
        guard headers[.forwardedProtocol]?.lowercased() != "https", let authority = head.authority else { return false }
        let host = authority.hasPrefix("[") ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
        return ["localhost", "127.0.0.1", "[::1]"].contains(String(host))
    }
}
