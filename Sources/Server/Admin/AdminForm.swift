import Hummingbird
import Ledger

/// The fields of a form as a browser sends them.
struct AdminForm: Sendable {
    /// The largest form, in bytes. Ours have a few hundred.
    static let bytesMax = 16 * 1024
    /// How long a form may take to arrive, in seconds. A browser sends it at once.
    static let secondsMax = 10.0

    private let fields: [String: String]

    /// Reads the form of a request. Throws a problem for one that a page of another site sent.
    init(_ request: Request) async throws {
        try request.requireOwnPage()
        var limits = ServerLimits()
        limits.bodyBytesMax = Self.bytesMax
        limits.bodySecondsMax = Self.secondsMax
        let body = try await limits.body(of: request)
        fields = try URLEncodedFormDecoder().decode([String: String].self, from: String(buffer: body))
    }

    /// Returns a field; empty when it is absent.
    subscript(_ name: String) -> String { fields[name] ?? "" }

    /// Throws a problem for a form that carries no token of the session.
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
