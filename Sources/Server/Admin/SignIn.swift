import Hummingbird
import Logging
import Synchronization
import Tracking

/// Signing in and out.
enum SignIn {
    static let path = "/admin/sign-in"
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
        guard let text, text.hasPrefix("/admin?") || text.hasPrefix("/admin/") else { return nil }
        return text.isVisibleASCII() ? text : nil
    }
}

extension Request {
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
        let session = try await tracker.ledger.admin.openSession(of: key)
        answer.setCookie(cookie(session, seconds: Int(LedgerAdmin.sessionSeconds), for: request))
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
        try AdminPage(title: "Sign in", template: "sign_in", content: SignIn.Form(problem: problem, wanted: wanted))
            .response(status: status)
    }

    /// Returns a session cookie. The browser sends it only to these pages, never from another site, and over TLS unless
    /// to this machine. Scripts cannot read it.
    private func cookie(_ value: String, seconds: Int, for request: Request) -> Cookie {
        Cookie(
            name: SignIn.cookieName, value: value, maxAge: seconds, path: "/admin", secure: !request.isLoopback,
            httpOnly: true, sameSite: .strict)
    }
}

/// The counts of recently failed sign-ins, by source address and key prefix.
///
/// A key has 256 bits and cannot be guessed. The limit stops a caller who keeps trying a wrong key, and affects neither
/// other callers nor other keys from the same address, as behind a reverse proxy.
final class SignInAttempts: Sendable {
    /// The key by which failures are counted.
    struct Attempt: Hashable, Sendable {
        /// The number of a key's characters that are kept: too few to be of use, enough to distinguish keys.
        private static let prefixCharacters = "perennial_".count + 8

        let source: SourceAddress
        private let keyPrefix: String

        init(from source: SourceAddress, withSecret secret: String) {
            self.source = source
            keyPrefix = String(secret.prefix(Self.prefixCharacters))
        }
    }

    /// The failures that are allowed in one stretch of time, and its length in seconds.
    static let failuresMax = 20
    static let stretchSeconds = 60
    /// The most attempts counted separately. Beyond it, expired ones are forgotten, or all where that is not enough.
    static let attemptsMax = 10_000

    private struct Stretch {
        var failures = 0
        let until: ContinuousClock.Instant
    }

    private let now: @Sendable () -> ContinuousClock.Instant
    private let stretches = Mutex<[Attempt: Stretch]>([:])

    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
        self.now = now
    }

    /// Returns the seconds until such an attempt is allowed, or nil when it is allowed now.
    func secondsToWait(before attempt: Attempt) -> Int? {
        let now = now()
        return stretches.withLock { stretches in
            guard let stretch = stretches[attempt], stretch.failures >= Self.failuresMax, now < stretch.until else {
                return nil
            }
            return max(1, Int((stretch.until - now).components.seconds))
        }
    }

    func count(failed attempt: Attempt) {
        let now = now()
        stretches.withLock { stretches in
            if stretches[attempt].map({ now >= $0.until }) ?? true {
                stretches.makeRoom(below: Self.attemptsMax) { now < $0.until }
                stretches[attempt] = Stretch(until: now.advanced(by: .seconds(Self.stretchSeconds)))
            }
            stretches[attempt]?.failures += 1
        }
    }
}
