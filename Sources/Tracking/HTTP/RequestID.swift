import Hummingbird

extension HTTPFields.Element.Name {
    /// What a request is called, in its caller's log and in ours.
    // The name is a token of RFC 9110, so it cannot be refused.
    // swift-format-ignore: NeverForceUnwrap
    static let requestID = Self("X-Request-Id")!
}

/// What requests are called whose callers gave them no name.
enum RequestID {
    /// A new one.
    static func random() -> String { String(UInt64.random(in: 0 ... .max), radix: 16) }
}

extension HTTPFields {
    private static let requestIDCharactersMax = 128

    /// The id the caller gave the request, if it can be written to a log and a header as it stands.
    var givenRequestID: String? {
        guard let id = self[.requestID], (1...Self.requestIDCharactersMax).contains(id.utf8.count),
            id.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        return id
    }
}
