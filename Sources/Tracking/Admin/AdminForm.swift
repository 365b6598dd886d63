import Hummingbird

/// The fields of a form as a browser sends them.
struct AdminForm: Sendable {
    /// The largest form; ours are a few hundred bytes.
    static let bytesMax = 16 * 1024
    /// A browser sends it at once.
    static let secondsMax = 10.0

    private let fields: [String: String]

    init(_ fields: [String: String]) { self.fields = fields }

    /// Reads a form from a request.
    init(_ request: Request) async throws {
        var limits = ServerLimits()
        limits.bodyBytesMax = Self.bytesMax
        limits.bodySecondsMax = Self.secondsMax
        let body = try await limits.body(of: request)
        fields = try URLEncodedFormDecoder().decode([String: String].self, from: String(buffer: body))
    }

    /// A field; empty when it was not sent.
    subscript(_ name: String) -> String { fields[name] ?? "" }
}

extension String {
    /// Whether this is the secret; how long the answer takes tells nothing about it.
    func isSecret(_ secret: String) -> Bool {
        let (mine, other) = (Array(utf8), Array(secret.utf8))
        guard mine.count == other.count, !other.isEmpty else { return false }
        return zip(mine, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
