import Hummingbird
import Ledger
import Tracking

/// The pages under `/admin`, rendered on the server without scripts, for people with a key of scope admin for every
/// app.
struct AdminSite: Sendable {
    let tracker: Tracker
    let keys: KeyRing
    let attempts = SignInAttempts()

    /// Every path of the pages.
    var routes: [Route] {
        [
            AdminFile.style.route, AdminFile.icon.route,
            signInForm, signIn, signOut, overview, customers, customer, receipt, checkReceipt, incidents,
        ]
    }

    /// Returns a page that needs no session.
    func open(
        _ method: HTTPRequest.Method, _ path: String,
        _ answer: @escaping @Sendable (Request, CallerContext) async throws -> Response
    ) -> Route {
        Route(method, path) { request, context in
            do {
                return try await answer(request, context).asAdminPage
            } catch {
                return try errorPage(error, session: nil, context.logger).asAdminPage
            }
        }
    }

    /// Returns a page that needs a session. A visitor without one is redirected to the sign-in.
    func page(
        _ path: String, _ answer: @escaping @Sendable (AdminVisit) async throws -> Response
    ) -> Route {
        Route(.get, path) { request, context in
            await self.answer(request, context, AdminForm([:])) { try await answer($0) }
        }
    }

    /// Returns the route of a form that needs a session. It accepts only the session's own token, sent from our own
    /// pages.
    func form(
        _ path: String, _ answer: @escaping @Sendable (AdminVisit) async throws -> Response
    ) -> Route {
        Route(.post, path) { request, context in
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
