import Hummingbird

/// One path and what answers each of its methods; OPTIONS tells which, and every other method is answered with 405.
struct Route: Sendable {
    typealias Answer = @Sendable (Request, CallerContext) async throws -> Response

    /// The path with its parameters in braces.
    let path: String
    /// What answers, by method.
    let answers: [HTTPRequest.Method: Answer]
    /// Whether the answers are a matter of microseconds, and so are made on the thread of the connection's event loop.
    private(set) var isBrief = false

    /// Every method of RFC 9110 and RFC 5789, and QUERY.
    private static let knownMethods: [HTTPRequest.Method] =
        [.get, .head, .post, .put, .patch, .delete, .options, .trace, .connect]
        + [HTTPRequest.Method(rawValue: "QUERY")].compactMap { $0 }

    /// A path with one method. HEAD follows GET by itself.
    init(_ method: HTTPRequest.Method, _ path: String, _ answer: @escaping Answer) {
        self.path = path
        answers = [method: answer]
    }

    private init(_ path: String, _ answers: [HTTPRequest.Method: Answer]) {
        self.path = path
        self.answers = answers
    }

    /// The same path with another route's methods beside its own.
    func joined(with other: Route) -> Route {
        Route(path, answers.merging(other.answers) { own, _ in own })
    }

    /// The same path, answered without leaving the event loop's thread: other connections wait meanwhile.
    var brief: Route {
        var route = self
        route.isBrief = true
        return route
    }

    /// The methods that are answered, as the `Allow` header lists them.
    private var allowed: [HTTPRequest.Method] {
        Self.knownMethods.filter { answers[$0] != nil || $0 == .options || ($0 == .head && answers[.get] != nil) }
    }

    /// Makes the router answer this path.
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
    /// The router takes `customers//entitlements` for `customers/entitlements`: somebody without an id would be told about a
    /// customer of that name.
    fileprivate func requireWholePath() throws {
        let slash = UInt8(ascii: "/")
        // Somebody whose address of the server ends with a slash is understood.
        let path = uri.path.utf8.drop { $0 == slash }
        guard zip(path, path.dropFirst()).contains(where: { $0 == slash && $1 == slash }) else { return }
        throw Problem(.notFound, "The path has an empty part, such as a customer without an id.")
    }
}

extension Parameters {
    /// A path parameter with its percent encoding undone, byte by byte: two ids that differ stay two.
    ///
    /// Refused are what is not UTF-8, and NUL, where PostgreSQL's text would end.
    func decoded(_ name: String) throws -> String {
        let encoded = String(try require(name))
        // Most ids are written as they are.
        guard encoded.utf8.contains(where: { $0 == UInt8(ascii: "%") || $0 == 0 }) else { return encoded }
        guard let bytes = Self.bytes(percentEncoded: encoded),
            let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0)
        else {
            throw Problem(.invalid, "The path's \(name) is not percent-encoded UTF-8 text.")
        }
        return text
    }

    /// RFC 3986, section 2.1; nil for a percent sign without two digits.
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
