import Hummingbird
import Ledger

/// The pages under `/admin`: made here, without scripts, for people with a key of scope admin for every app.
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

    /// A page that anybody may ask for.
    func open(
        _ method: HTTPRequest.Method, _ path: String,
        _ answer: @escaping @Sendable (Request, CallerContext) async throws -> Response
    ) -> Route {
        Route(method, path) { request, context in
            do {
                return try await answer(request, context).asAdminPage
            } catch {
                return try troublePage(error, session: nil, context.logger).asAdminPage
            }
        }
    }

    /// A page for who is signed in; others are asked to sign in.
    func page(
        _ path: String, _ answer: @escaping @Sendable (AdminVisit) async throws -> Response
    ) -> Route {
        Route(.get, path) { request, context in
            await self.answer(request, context, AdminForm([:])) { try await answer($0) }
        }
    }

    /// A form of a page for who is signed in. It counts only with the session's own token, sent from our own pages.
    func form(
        _ path: String, _ answer: @escaping @Sendable (AdminVisit) async throws -> Response
    ) -> Route {
        Route(.post, path) { request, context in
            let read: AdminForm
            do {
                try request.requireOwnPage()
                read = try await AdminForm(request)
            } catch {
                return try troublePage(error, session: nil, context.logger).asAdminPage
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
            return await troubled(error, session, context)
        }
    }

    private func troubled(
        _ error: any Error, _ session: AdminSession?, _ context: CallerContext
    ) async -> Response {
        do {
            return try troublePage(error, session: session, context.logger).asAdminPage
        } catch {
            context.logger.error("no page could be made: \(error)")
            return Response(status: .internalServerError)
        }
    }
}

/// A request of somebody who is signed in.
struct AdminVisit: Sendable {
    let request: Request
    let parameters: Parameters
    let session: AdminSession
    /// What was sent with the form; nothing of a page that is only asked for.
    let form: AdminForm

    /// A value of the address's query, if it is there and not empty.
    func query(_ name: Substring) -> String? {
        request.uri.queryParameters[name].map(String.init).flatMap { $0.isEmpty ? nil : $0 }
    }
}
