import Foundation
import HTTPTypes
import Hummingbird
import JSON
import Subscriptions
import Tracking

extension ServerLimits {
    /// Returns the whole body of a request. Throws a problem when it exceeds the limits of size or time.
    func body(of request: Request) async throws -> ByteBuffer {
        if let length = request.headers[.contentLength].flatMap(Int.init), length > bodyBytesMax { throw tooLarge }
        return try await withThrowingTaskGroup(of: ByteBuffer?.self) { group in
            group.addTask {
                var request = request
                return try await collectBody(of: &request)
            }
            group.addTask {
                try await Task.sleep(for: .seconds(bodySecondsMax))
                return nil
            }
            defer { group.cancelAll() }
            do {
                if let body = try await group.next() ?? nil { return body }
            } catch let error as any HTTPResponseError where error.status == .contentTooLarge {
                throw tooLarge
            }
            throw Problem(
                .timedOut, "The body did not arrive within \(bodySecondsMax) seconds.", headers: [.connection: "close"])
        }
    }

    private func collectBody(of request: inout Request) async throws -> ByteBuffer {
        do {
            return try await request.collectBody(upTo: bodyBytesMax)
        } catch let error where !(error is any HTTPResponseError || error is CancellationError) {
            throw Problem(
                .invalid, "The body does not arrive as HTTP has it: \(error).", headers: [.connection: "close"])
        }
    }

    /// Returns the body decoded from JSON. Throws a problem for a content type other than JSON, unless it is absent,
    /// and for an unknown or repeated field, which another reader of the body could take for another value. Handlers call
    /// it before their own queries, so that a useless body costs none of them.
    func json<Body: KnownFields>(_ type: Body.Type, of request: Request) async throws -> Body {
        if let type = request.headers[.contentType], !Self.isJSON(type) {
            throw Problem(
                .unsupportedMedia, "Send the body as application/json.", headers: [.accept: "application/json"])
        }
        let data = Data(try await body(of: request).readableBytesView)
        // The decoder alone also takes UTF-16, a comma at the end of a list, and the first of two equal fields.
        guard let document = try? JSONDocument(Array(data)) else { throw Problem(.invalid, "The body is not JSON.") }
        guard document.nodes[JSONDocument.root].kind == .object else {
            throw Problem(.invalid, "The body's outermost value has the wrong type.")
        }
        let given = document.keys(JSONDocument.root).map { document.unescaped(document.nodes[$0]) }
        try Problem.refuse(given, known: Body.CodingKeys.allCases.map(\.stringValue), as: "body's field")
        return try JSONDecoder().decode(Body.self, from: data)
    }

    /// Returns whether the type is or is built on `application/json` (RFC 9110, section 8.3.1; RFC 6838, section 4.2.8).
    private static func isJSON(_ type: String) -> Bool {
        let essence = type.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        return essence == "application/json" || (essence.hasPrefix("application/") && essence.hasSuffix("+json"))
    }

    private var tooLarge: Problem {
        Problem(.tooLarge, "The body is larger than \(bodyBytesMax) bytes.")
    }
}

/// A body whose fields are all known. An unknown field is refused, because its sender would believe that it was read.
protocol KnownFields: Decodable, Sendable {
    associatedtype CodingKeys: CodingKey, CaseIterable
}

extension SingleValueDecodingContainer {
    /// Returns a whole number. For one that does not fit its type, throws a problem with the field and its range: the
    /// decoder would say that the whole body is no JSON.
    func number<Number: FixedWidthInteger & Decodable>(in range: ClosedRange<Number>) throws -> Number {
        do {
            return try decode(Number.self)
        } catch let error as DecodingError {
            guard case .dataCorrupted = error else { throw error }
        } catch {
            // What no number of the decoder holds is an error of its own.
        }
        throw Problem(
            .invalid,
            "The body's \(Problem.place(codingPath)) is a whole number from \(range.lowerBound) to \(range.upperBound)."
        )
    }
}

extension Request {
    /// Throws a problem for an unknown name in the query, and for one that is given twice.
    func requireQuery(known: [String]) throws {
        guard uri.query != nil else { return }
        let given = uri.queryParameters.map { String($0.key) }.filter { !$0.isEmpty }
        try Problem.refuse(given, known: known, as: "query's")
    }

    /// Throws a problem for an address that some reader would take for another one: with a fragment, which no request
    /// has, or with a query that is not percent-encoded.
    func requireReadableAddress() throws {
        guard !uri.string.utf8.contains(UInt8(ascii: "#")) else {
            throw Problem(.invalid, "The address has a #, which no request has; write it as %23.")
        }
        guard let query = uri.query, query.percentDecoded == nil else { return }
        throw Problem(.invalid, "The query is not percent-encoded UTF-8 text without NUL.")
    }

    /// Returns an instant of the query, or nil when it is absent. Throws a problem when it is invalid.
    func instant(_ name: String) throws -> Instant? {
        try uri.queryParameters.get(name).map { try Instant(asked: $0, as: "The query's \(name)") }
    }

    /// Returns a whole number of the query, or nil when it is absent. A number above the range becomes `highest`.
    func number(_ name: String, from lowest: Int64, upTo highest: Int64) throws -> Int64? {
        guard let text = uri.queryParameters.get(name) else { return nil }
        guard text.utf8.count <= 18, let number = Int64.ofDigits(text), number >= lowest
        else { throw Problem(.invalid, "The query's \(name) is not a whole number from \(lowest) on.") }
        return min(number, highest)
    }

    /// Returns a UUID of the query in lower case, or nil when it is absent. Throws a problem for anything else.
    func uuid(_ name: String) throws -> String? {
        guard let text = uri.queryParameters.get(name) else { return nil }
        guard let id = UUID(uuidString: text) else { throw Problem(.invalid, "The query's \(name) is not a UUID.") }
        return id.uuidString.lowercased()
    }

    /// Returns a word of the query, or nil when it is absent. Throws a problem for a word that is not one of the known.
    func word<Word: RawRepresentable<String> & CaseIterable>(_ name: String, _ type: Word.Type) throws -> Word? {
        guard let text = uri.queryParameters.get(name) else { return nil }
        guard let word = Word(rawValue: text) else {
            let known = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw Problem(.invalid, "The query's \(name) is not one of \(known).")
        }
        return word
    }

    /// Throws a problem for a path with an empty part. The router takes `customers//entitlements` for
    /// `customers/entitlements`, so a caller without an id would get the data of a customer named `entitlements`.
    func requireWholePath() throws {
        // Extra slashes at the beginning come from a server address that ends with one, and are accepted.
        var path = uri.string
        let isWhole = path.withUTF8 { bytes in
            let slash = UInt8(ascii: "/")
            let start = bytes.firstIndex { $0 != slash } ?? bytes.endIndex
            var (place, before) = (start, UInt8(0))
            while place < bytes.endIndex, bytes[place] != UInt8(ascii: "?") {
                if bytes[place] == slash, before == slash { return false }
                before = bytes[place]
                place += 1
            }
            // Elsewhere the last part is never an id that may be empty, and people type a slash after it, as after the
            // address that Apple sends notifications to.
            let rest = bytes[start...]
            return before != slash || !rest.starts(with: "v1/".utf8) || rest.starts(with: "v1/notifications/".utf8)
        }
        guard isWhole else { throw Problem(.notFound, "The path has an empty part, such as a customer without an id.") }
    }
}

extension Problem {
    /// Throws a problem for the first unknown name, in alphabetical order, and suggests the nearest known one. Throws one
    /// for a name that is given twice, too.
    fileprivate static func refuse(_ given: [String], known: [String], as place: String) throws {
        if let unknown = given.filter({ !known.contains($0) }).min() {
            let hint =
                known.nearest(to: unknown).map { "the nearest name is \($0)." }
                ?? (known.isEmpty ? "there is none to give." : "known are \(known.joined(separator: ", ")).")
            throw Problem(.invalid, "Nothing reads the \(place) \(unknown); \(hint)")
        }
        for name in known where given.count(where: { $0 == name }) > 1 {
            throw Problem(.invalid, "The \(place) \(name) is given more than once; give it once.")
        }
    }
}

extension Instant {
    /// PostgreSQL can represent every instant between these. No receipt is older or lasts longer.
    private static let allowed = Instant(milliseconds: 0)...Instant(milliseconds: 253_402_300_799_999)

    /// Reads an instant that a caller gave: a date, a time and an offset, between 1970 and 9999. Throws a problem for
    /// anything else.
    init(asked text: String, as name: String) throws {
        guard let instant = Instant(iso8601: text), Self.allowed.contains(instant) else {
            throw Problem(.invalid, "\(name) is not an instant between 1970 and 9999, like 2026-11-20T12:00:00Z.")
        }
        // Its sender may mean the time of another place.
        guard Self.namesOffset(text) else {
            throw Problem(
                .invalid,
                "\(name) does not say which offset its time has; write Z for UTC, like 2026-11-20T12:00:00Z.")
        }
        self = instant
    }
}

extension FixedWidthInteger {
    /// Reads a number of a path, a query or a form: digits alone, so that every number has one spelling. Returns nil for a
    /// sign, for leading zeros, and for a number that does not fit.
    static func ofDigits(_ text: String) -> Self? {
        guard text.utf8.allSatisfy(\.isDigit), text == "0" || text.utf8.first != UInt8(ascii: "0") else { return nil }
        return Self(text)
    }
}

extension String {
    /// Returns whether it has 1 to `bytesMax` bytes of visible ASCII, so that headers and logs may hold it unchanged.
    func isVisibleASCII(bytesMax: Int = .max) -> Bool {
        (1...bytesMax).contains(utf8.count) && utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// Returns a currency of a body in capitals. Throws a problem for what is none.
    func asCurrency() throws -> String {
        guard isCurrency else {
            throw Problem(.invalid, "The body's currency is not an ISO 4217 code of three letters, like USD.")
        }
        return uppercased()
    }
}

// The names are tokens of RFC 9110, so the initializers cannot fail.
// swift-format-ignore: NeverForceUnwrap
extension HTTPFields.Element.Name {
    /// The key by which a caller's repetition of a request is known.
    static let idempotencyKey = Self("Idempotency-Key")!
    /// The request's id in the caller's log and in ours.
    static let requestID = Self("X-Request-Id")!
    static let rateLimit = Self("RateLimit-Limit")!
    static let rateLimitRemaining = Self("RateLimit-Remaining")!
    static let rateLimitReset = Self("RateLimit-Reset")!
    static let forwardedFor = Self("X-Forwarded-For")!
    static let forwardedProtocol = Self("X-Forwarded-Proto")!
    static let fetchSite = Self("Sec-Fetch-Site")!
    static let referrerPolicy = Self("Referrer-Policy")!
}

extension Parameters {
    /// Returns a path parameter with its percent encoding removed. Throws a problem for text that is not UTF-8, and for
    /// NUL.
    func decoded(_ name: String) throws -> String {
        guard let text = String(try require(name)).percentDecoded else {
            throw Problem(.invalid, "The path's \(name) is not percent-encoded UTF-8 text.")
        }
        return text
    }

    /// Returns a number of the path; throws a problem that there is no such thing for anything else.
    func number<Number: FixedWidthInteger>(_ name: String, of thing: String) throws -> Number {
        let text = try decoded(name)
        guard let number = Number.ofDigits(text) else { throw Problem(.notFound, "There is no \(thing) \(text).") }
        return number
    }
}

extension String {
    /// The text with its percent encoding (RFC 3986, section 2.1) removed byte by byte, so that different texts stay
    /// different. Nil for a percent sign without two hex digits, for what is not UTF-8, and for NUL, where PostgreSQL's
    /// text would end.
    fileprivate var percentDecoded: String? {
        // Most texts have no percent encoding.
        guard utf8.contains(where: { $0 == UInt8(ascii: "%") || $0 == 0 }) else { return self }
        var bytes: [UInt8] = []
        var rest = utf8[...]
        while var byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                guard let high = rest.popFirst()?.hexadecimalDigit, let low = rest.popFirst()?.hexadecimalDigit else {
                    return nil
                }
                byte = high << 4 | low
            }
            guard byte != 0 else { return nil }
            bytes.append(byte)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension UInt8 {
    fileprivate var hexadecimalDigit: UInt8? {
        Character(UnicodeScalar(self)).hexDigitValue.flatMap { self < 0x80 ? UInt8($0) : nil }
    }
}
