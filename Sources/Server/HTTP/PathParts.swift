import Hummingbird

/// Middleware that refuses a path with an empty part. The router takes `customers//entitlements` for
/// `customers/entitlements`, so a caller without an id would get the data of a customer named `entitlements`.
struct RequireWholePath: RouterMiddleware {
    func handle(
        _ request: Request, context: CallerContext, next: (Request, CallerContext) async throws -> Response
    ) async throws -> Response {
        let slash = UInt8(ascii: "/")
        // Extra slashes at the beginning come from a server address that ends with one, and are accepted.
        let path = request.uri.path.utf8.drop { $0 == slash }
        guard !zip(path, path.dropFirst()).contains(where: { $0 == slash && $1 == slash }) else {
            throw Problem(.notFound, "The path has an empty part, such as a customer without an id.")
        }
        return try await next(request, context)
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
