import Hummingbird
import Ledger
import Tracking

/// The pages under `/admin`, rendered on the server without scripts, for people with a key of scope admin for every
/// app.
struct AdminSite: Sendable {
    let tracker: Tracker
    let keys: KeyCache
    let attempts = SignInAttempts()

    /// Adds every path of the pages.
    func addRoutes(to routes: RouterGroup<CallerContext>) {
        for file in [AdminFile.style, .icon] { file.addRoute(to: routes) }
        routes.get(RouterPath(SignIn.path), use: open(signInForm))
        routes.post("/admin/session", use: open(signIn))
        routes.post("/admin/sign-out", use: form(signOut))
        routes.get("/admin", use: page(overview))
        routes.get("/admin/customers", use: page(customers))
        routes.get("/admin/customer", use: page(customer))
        routes.get("/admin/receipts/{id}", use: page(receipt))
        routes.post("/admin/receipts/{id}/check", use: form(checkReceipt))
        routes.get("/admin/incidents", use: page(incidents))
    }

    /// The handler of a route.
    private typealias Handler = @Sendable (Request, CallerContext) async throws -> Response

    /// Returns the handler of a page that needs no session.
    private func open(_ answer: @escaping Handler) -> Handler {
        { request, context in
            do {
                return try await answer(request, context).asAdminPage
            } catch {
                return try errorPage(error, session: nil, context.logger).asAdminPage
            }
        }
    }

    /// Returns the handler of a page that needs a session. A visitor without one is redirected to the sign-in.
    private func page(_ answer: @escaping @Sendable (AdminVisit) async throws -> Response) -> Handler {
        { request, context in await self.answer(request, context, AdminForm([:]), answer) }
    }

    /// Returns the handler of a form that needs a session. It accepts only the session's own token, sent from our own
    /// pages.
    private func form(_ answer: @escaping @Sendable (AdminVisit) async throws -> Response) -> Handler {
        { request, context in
            let read: AdminForm
            do {
                try request.requireOwnPage()
                read = try await AdminForm(request)
            } catch {
                return try errorPage(error, session: nil, context.logger).asAdminPage
            }
            return await self.answer(request, context, read) { visit in
                guard read["form_token"].isSecret(visit.session.formToken) else {
                    throw Problem(
                        .forbidden, "The form is from another session; go back, reload the page and try again.")
                }
                return try await answer(visit)
            }
        }
    }

    private func answer(
        _ request: Request, _ context: CallerContext, _ form: AdminForm,
        _ answer: (AdminVisit) async throws -> Response
    ) async -> Response {
        var session: AdminSession?
        do {
            guard let secret = request.sessionSecret, let found = try await tracker.ledger.session(withSecret: secret)
            else { return Response.redirect(to: SignIn.path).asAdminPage }
            session = found
            return try await answer(
                AdminVisit(request: request, parameters: context.parameters, session: found, form: form)
            ).asAdminPage
        } catch {
            return await pageOnError(error, session, context)
        }
    }

    private func pageOnError(
        _ error: any Error, _ session: AdminSession?, _ context: CallerContext
    ) async -> Response {
        do {
            return try errorPage(error, session: session, context.logger).asAdminPage
        } catch {
            context.logger.error("no page could be made: \(error)")
            return Response(status: .internalServerError)
        }
    }
}

/// A request with a session.
struct AdminVisit: Sendable {
    let request: Request
    let parameters: Parameters
    let session: AdminSession
    /// The fields of a form; empty for a GET.
    let form: AdminForm

    /// Returns a value of the query, or nil when it is absent or empty.
    func query(_ name: Substring) -> String? {
        request.uri.queryParameters[name].map(String.init).flatMap { $0.isEmpty ? nil : $0 }
    }
}
