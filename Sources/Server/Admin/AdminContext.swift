import Hummingbird
import Ledger

/// The context of a request with a running session.
struct AdminContext: ChildRequestContext {
    var coreContext: CoreRequestContextStorage
    /// The session of the signed-in key.
    let session: AdminSession
    /// The form that the request sent, with the session's token; nil for a request without one.
    let form: AdminForm?

    /// Creates the context of a request that `AdminAuthenticator` passed. Throws a problem for any other.
    init(context: CallerContext) throws {
        guard let session = context.session else { throw Problem(.unauthenticated, "Sign in at \(SignIn.path).") }
        coreContext = context.coreContext
        self.session = session
        form = context.form
    }
}

/// Middleware that admits a request with a running session, and notes the session in the context. It redirects any
/// other to the sign-in.
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
        context.session = session
        context.form = form
        do {
            try form?.requireToken(of: session)
            return try await next(request, context)
        } catch {
            return try AdminPage.response(telling: error, session: session, context.logger)
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
            return try AdminPage.response(telling: error, session: nil, context.logger).asAdminPage
        }
    }
}
