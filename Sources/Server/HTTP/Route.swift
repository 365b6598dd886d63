import Hummingbird

/// One path with a handler for each of its methods. OPTIONS lists the methods, and every other method gets 405.
struct Route: Sendable {
    typealias Answer = @Sendable (Request, CallerContext) async throws -> Response

    /// The path, with its parameters in braces.
    let path: String
    /// The handlers by method.
    let answers: [HTTPRequest.Method: Answer]
    /// Whether the handlers need only microseconds, so that they run on the thread of the connection's event loop.
    private(set) var isBrief = false

    /// Every method of RFC 9110 and RFC 5789, and QUERY.
    private static let knownMethods: [HTTPRequest.Method] =
        [.get, .head, .post, .put, .patch, .delete, .options, .trace, .connect]
        + [HTTPRequest.Method(rawValue: "QUERY")].compactMap { $0 }

    /// Creates a path with one method. GET adds HEAD by itself.
    init(_ method: HTTPRequest.Method, _ path: String, _ answer: @escaping Answer) {
        self.path = path
        answers = [method: answer]
    }

    private init(_ path: String, _ answers: [HTTPRequest.Method: Answer]) {
        self.path = path
        self.answers = answers
    }

    /// Returns the same path with the methods of another route added.
    func joined(with other: Route) -> Route {
        Route(path, answers.merging(other.answers) { own, _ in own })
    }

    /// The same path, answered on the event loop's thread. Other connections of that loop wait meanwhile.
    var brief: Route {
        var route = self
        route.isBrief = true
        return route
    }

    /// The supported methods, as the `Allow` header lists them.
    private var allowed: [HTTPRequest.Method] {
        Self.knownMethods.filter { answers[$0] != nil || $0 == .options || ($0 == .head && answers[.get] != nil) }
    }

    /// Adds this path to the router.
    func add(to router: Router<CallerContext>) {
        for (method, answer) in answers {
            router.on(RouterPath(path), method: method) { request, context in
                try request.requireWholePath()
                return try await withTaskExecutorPreference(isBrief ? nil : globalConcurrentExecutor) {
                    try await answer(request, context)
                }
            }
        }
        let allow = allowed.map(\.rawValue).joined(separator: ", ")
        router.on(RouterPath(path), method: .options) { _, _ in
            Response(status: .noContent, headers: [.allow: allow])
        }
        for method in Self.knownMethods where !allowed.contains(method) {
            router.on(RouterPath(path), method: method) { _, _ -> Response in
                throw Problem(.methodNotAllowed, "Here only \(allow) is answered.", headers: [.allow: allow])
            }
        }
    }
}

extension Request {
    /// Throws a problem for a path with an empty part. The router takes `customers//entitlements` for
    /// `customers/entitlements`, so a caller without an id would get the data of a customer named `entitlements`.
    fileprivate func requireWholePath() throws {
        let slash = UInt8(ascii: "/")
        // Extra slashes at the beginning come from a server address that ends with one, and are accepted.
        let path = uri.path.utf8.drop { $0 == slash }
        guard zip(path, path.dropFirst()).contains(where: { $0 == slash && $1 == slash }) else { return }
        throw Problem(.notFound, "The path has an empty part, such as a customer without an id.")
    }
}

extension Parameters {
    /// Returns a path parameter with its percent encoding decoded byte by byte, so that different ids stay different.
    ///
    /// Throws a problem for text that is not UTF-8, and for NUL, where PostgreSQL's text would end.
    func decoded(_ name: String) throws -> String {
        let encoded = String(try require(name))
        // Most ids have no percent encoding.
        guard encoded.utf8.contains(where: { $0 == UInt8(ascii: "%") || $0 == 0 }) else { return encoded }
        guard let bytes = Self.bytes(percentEncoded: encoded),
            let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0)
        else {
            throw Problem(.invalid, "The path's \(name) is not percent-encoded UTF-8 text.")
        }
        return text
    }

    /// Decodes percent-encoded text (RFC 3986, section 2.1). Returns nil for a percent sign without two hex digits.
    private static func bytes(percentEncoded text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        Character(UnicodeScalar(byte)).hexDigitValue.flatMap { byte < 0x80 ? UInt8($0) : nil }
    }
}
