import NIOHTTP1

/// What one HTTP call brought, before anybody reads meaning into it.
struct Exchange: Sendable {
    /// Nil when no answer began.
    var httpStatus: Int?
    var headers = HTTPHeaders()
    var body: [UInt8] = []
    /// Why there is no whole answer with HTTP 200; nil when there is one.
    var trouble: String?
    /// What the network called it, for the log.
    var troubleDetail: String?

    /// Apple's name for this call; printable and short.
    var correlationID: String? {
        ["x-apple-jingle-correlation-key", "x-apple-request-uuid"].lazy
            .compactMap { headers.first(name: $0) }.first.map { $0.printable(charactersMax: 100) }
    }

    /// An exchange that never began.
    static func failed(_ trouble: String) -> Exchange { Exchange(trouble: trouble) }
}

extension String {
    /// This text on one line and no longer than `charactersMax`: what a server sent must not break a log.
    func printable(charactersMax: Int) -> String {
        if utf8.count <= charactersMax, utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return self }
        return String(
            prefix(charactersMax).map { $0.isASCII && !$0.isNewline && $0 >= " " && $0 != "\u{7F}" ? $0 : "?" })
    }
}
