import Hummingbird
import Ledger
import Logging
import Tracking

/// Signing in and out.
enum SignIn {
    /// The path of the form.
    static let path = "/admin/sign-in"
    /// The name of the browser's cookie.
    static let cookieName = "perennial_session"

    struct Form {
        let problem: String?
        /// The page that the visitor wanted.
        let wanted: String?
    }

    /// Returns the path of the form, which leads to the wanted page afterwards.
    static func path(leadingTo request: Request) -> String {
        [.get, .head].contains(request.method) && request.uri.string != "/admin"
            ? address(path, ["to": request.uri.string]) : path
    }

    /// Returns the page that a form asks for, if it is one of ours; a link from elsewhere must not lead away.
    static func wanted(_ text: String?) -> String? {
        guard let text, text.hasPrefix("/admin?") || text.hasPrefix("/admin/"),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        return text
    }
}

extension Request {
    /// The session secret in the browser's cookie.
    var sessionSecret: String? {
        cookies[SignIn.cookieName].flatMap { $0.value.utf8.count == 64 ? $0.value : nil }
    }
}

extension AdminSite {
    /// `GET /admin/sign-in`
    func signInForm(_ request: Request, _: CallerContext) async throws -> Response {
        try signInPage(nil, leadingTo: SignIn.wanted(request.query("to")), status: .ok)
    }

    /// `POST /admin/session`: opens a session for a key.
    func signIn(_ request: Request, _ context: CallerContext) async throws -> Response {
        let form = try await AdminForm(request)
        let (secret, wanted) = (form["key"].filter { !$0.isWhitespace }, SignIn.wanted(form["to"]))
        let attempt = SignInAttempts.Attempt(from: context.source(of: request, behind: proxies), withSecret: secret)
        if let seconds = attempts.secondsToWait(before: attempt) {
            var page = try signInPage(
                "Too many sign-ins with this key failed. Try again in \(seconds.of("second", "seconds")).",
                leadingTo: wanted, status: .tooManyRequests)
            page.headers[.retryAfter] = String(seconds)
            return page
        }
        guard let key = try await keys.key(withSecret: secret) else {
            attempts.count(failed: attempt)
            // A caller without a known key has no name that the audit could record.
            tracker.logger.warning(
                "a sign-in to the admin pages was refused: the key is unknown or revoked",
                metadata: ["address": "\(attempt.source)"])
            return try signInPage("The key is unknown or revoked.", leadingTo: wanted, status: .forbidden)
        }
        guard key.scope.covers(.admin), key.bundleID == nil else {
            attempts.count(failed: attempt)
            try await tracker.ledger.acting(as: .key(key.id)).audit(.signInRefused, app: key.bundleID)
            return try signInPage(
                "The key may not see this: it takes one of scope admin for every app.", leadingTo: wanted,
                status: .forbidden)
        }
        var answer = Response.redirect(to: wanted ?? "/admin")
        answer.setCookie(
            cookie(
                try await tracker.ledger.admin.openSession(of: key), seconds: Int(LedgerAdmin.sessionSeconds),
                for: request))
        return answer
    }

    /// `POST /admin/sign-out`
    func signOut(_ request: Request, _ context: AdminContext) async throws -> Response {
        if let secret = request.sessionSecret {
            try await tracker.ledger.admin.closeSession(withSecret: secret, of: context.session.keyID)
        }
        var answer = Response.redirect(to: SignIn.path)
        answer.setCookie(cookie("ended", seconds: 0, for: request))
        return answer
    }

    private func signInPage(
        _ problem: String?, leadingTo wanted: String?, status: HTTPResponse.Status
    ) throws -> Response {
        try AdminPage(
            title: "Sign in", template: "sign_in", content: SignIn.Form(problem: problem, wanted: wanted)
        ).response(status: status)
    }

    /// Returns a session cookie. The browser sends it only to these pages, never from another site, and over TLS unless
    /// to this machine. Scripts cannot read it.
    private func cookie(_ value: String, seconds: Int, for request: Request) -> Cookie {
        Cookie(
            name: SignIn.cookieName, value: value, maxAge: seconds, path: "/admin", secure: !request.isLoopback,
            httpOnly: true, sameSite: .strict)
    }
}
