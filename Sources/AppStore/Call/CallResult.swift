import NIOHTTP1

/// The result of one HTTP call, not yet interpreted.
struct CallResult: Sendable {
    /// Nil if no answer began.
    var httpStatus: Int?
    var headers = HTTPHeaders()
    var body: [UInt8] = []
    /// The reason there is no complete answer with HTTP 200; nil if there is one.
    var failure: String?
    /// The network's own description of the failure, for the log.
    var failureDetail: String?

    /// Apple's id of this call; printable and short.
    var correlationID: String? {
        ["x-apple-jingle-correlation-key", "x-apple-request-uuid"].lazy
            .compactMap { headers.first(name: $0) }.first.map { $0.printable(charactersMax: 100) }
    }

    /// Returns the result of a call that never began.
    static func failed(_ failure: String) -> CallResult { CallResult(failure: failure) }
}

extension String {
    /// Returns this text on one line and no longer than `charactersMax`, because a server's text must not break a log.
    func printable(charactersMax: Int) -> String {
        if utf8.count <= charactersMax, utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return self }
        return String(
            prefix(charactersMax).map { $0.isASCII && !$0.isNewline && $0 >= " " && $0 != "\u{7F}" ? $0 : "?" })
    }
}
