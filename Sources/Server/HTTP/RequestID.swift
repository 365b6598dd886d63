import Hummingbird

extension HTTPFields.Element.Name {
    /// The header with the request's id in the caller's log and in ours.
    // The name is a token of RFC 9110, so the initializer cannot fail.
    // swift-format-ignore: NeverForceUnwrap
    static let requestID = Self("X-Request-Id")!
}

/// The ids of requests whose callers gave none.
enum RequestID {
    /// Returns a new random id.
    static func random() -> String { String(UInt64.random(in: 0 ... .max), radix: 16) }
}

extension HTTPFields {
    private static let requestIDCharactersMax = 128

    /// The id that the caller gave the request, if it is safe in a log and a header unchanged.
    var givenRequestID: String? {
        guard let id = self[.requestID], (1...Self.requestIDCharactersMax).contains(id.utf8.count),
            id.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        return id
    }
}
