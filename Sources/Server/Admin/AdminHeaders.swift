import Hummingbird

extension Response {
    /// The same response with the headers of every page: the browser stores nothing, runs no script and loads nothing
    /// from other sites.
    var asAdminPage: Response {
        var page = self
        for field in Self.adminHeaders where page.headers[field.name] == nil { page.headers[field.name] = field.value }
        return page
    }

    private static let adminHeaders: HTTPFields = {
        var headers: HTTPFields = [
            .contentSecurityPolicy:
                "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; "
                + "base-uri 'none'",
            .xContentTypeOptions: "nosniff",
            .cacheControl: "no-store",
        ]
        // With `no-referrer`, a browser would hide from us that our own page sent a form.
        if let name = AdminHeader.referrerPolicy { headers[name] = "same-origin" }
        return headers
    }()
}

/// The names of headers that the library does not define.
enum AdminHeader {
    static let referrerPolicy = HTTPFields.Element.Name("Referrer-Policy")
    static let fetchSite = HTTPFields.Element.Name("Sec-Fetch-Site")
    static let forwardedProtocol = HTTPFields.Element.Name("X-Forwarded-Proto")
}

extension Request {
    /// Throws a problem for a form that a page of another site sent.
    func requireOwnPage() throws {
        let isOwn: Bool
        if let site = AdminHeader.fetchSite.flatMap({ headers[$0] }) {
            isOwn = site == "same-origin" || site == "none"
        } else if let origin = headers[.origin] {
            isOwn = head.authority.map { origin == "http://\($0)" || origin == "https://\($0)" } ?? false
        } else {
            isOwn = true
        }
        guard isOwn else { throw Problem(.forbidden, "The form was sent by the page of another site.") }
    }

    /// Whether the browser connects to this machine itself, without TLS.
    var isLoopback: Bool {
        let proxied = AdminHeader.forwardedProtocol.flatMap { headers[$0] }?.lowercased()
        guard proxied != "https", let authority = head.authority else { return false }
        let host = authority.hasPrefix("[") ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
        return ["localhost", "127.0.0.1", "[::1]"].contains(String(host))
    }
}
