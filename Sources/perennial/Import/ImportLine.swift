import Foundation
import Subscriptions
import Tracking

/// One line of an import: `{"app": …, "customer": …, "receipt": …}` and, where known, `storefront`, `price`,
/// `currency`, `product`, `expires` and `provisional_until`. In place of the receipt there may be `signed_transaction` or
/// `transaction_id`.
struct ImportLine: Sendable, Hashable {
    var app: String
    var customer: String
    var receipt: String?
    var signedTransaction: String?
    var transactionID: String?
    var storefront: String?
    /// The price in thousandths of the currency's unit.
    var priceMilliunits: Int64?
    var currency: String?
    var product: String?
    var expiresAt: Instant?
    var provisionalUntil: Instant?

    /// Returns the submission in a line. Throws one sentence about its mistake.
    static func submission(in bytes: UnsafeRawBufferPointer) throws -> Submission {
        try (QuickLine.read(bytes) ?? CarefulLine.read(bytes)).submission
    }

    private var submission: Submission {
        get throws {
            guard !app.isEmpty else { throw Failure("app is empty; give the app's bundle id") }
            guard (priceMilliunits == nil) == (currency == nil) else { throw Failure("price and currency go together") }
            guard currency?.isCurrency ?? true else {
                throw Failure("currency is not an ISO 4217 code of three letters, like USD")
            }
            let subject = Submission.Subject(
                receipt: receipt, signedTransaction: signedTransaction, transactionID: transactionID)
            guard let subject else {
                throw Failure("give exactly one of receipt, signed_transaction and transaction_id")
            }
            return Submission(
                bundleID: BundleID(app), customer: customer, subject: subject, imported: true, storefront: storefront,
                priceMilliunits: priceMilliunits, currency: currency?.uppercased(), expiresAt: expiresAt,
                provisional: try provisional)
        }
    }

    private var provisional: Provisional? {
        get throws {
            guard let provisionalUntil else { return nil }
            guard let product, !product.isEmpty else {
                throw Failure("provisional_until needs product, which says what the customer has until then")
            }
            return Provisional(productID: ProductID(product), until: provisionalUntil)
        }
    }
}

/// A reader of ordinary lines in one pass: a flat object of plain strings, each key once. An import of millions of
/// lines would otherwise spend its time in the decoder. It returns nil for every unusual line, which `CarefulLine` then
/// reads. For every line that this one reads, both give the same result.
struct QuickLine {
    private let bytes: UnsafeRawBufferPointer
    private var at = 0

    /// Reads the line's fields; nil says only that `CarefulLine` is needed.
    static func read(_ bytes: UnsafeRawBufferPointer) -> ImportLine? {
        var reader = QuickLine(bytes: bytes)
        return reader.object()
    }

    /// Reads the whole object, and takes the values of the known keys.
    private mutating func object() -> ImportLine? {
        var texts = Fields()
        guard skip("{") else { return nil }
        repeat {
            guard let key = text(), skip(":"), let value = value(), texts.take(key, value) else { return nil }
        } while skip(",")
        guard skip("}") else { return nil }
        skipSpace()
        return at == bytes.count ? texts.line : nil
    }

    private enum Value {
        case text(String)
        case number(String)
        case null
    }

    private mutating func value() -> Value? {
        skipSpace()
        guard at < bytes.count else { return nil }
        switch bytes[at] {
        case UInt8(ascii: "\""): return text().map(Value.text)
        case UInt8(ascii: "n"): return skipWord("null") ? .null : nil
        case UInt8(ascii: "0")...UInt8(ascii: "9"): return number().map(Value.number)
        default: return nil
        }
    }

    /// Reads a short number without sign and exponent. `CarefulLine` might round longer ones.
    private mutating func number() -> String? {
        let start = at
        while at < bytes.count, bytes[at].isDigit || bytes[at] == UInt8(ascii: ".") { at += 1 }
        let digits = UnsafeRawBufferPointer(rebasing: bytes[start..<at])
        let parts = digits.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard digits.count <= 15, parts.count <= 2, parts.allSatisfy({ !$0.isEmpty }),
            parts[0].count == 1 || parts[0].first != UInt8(ascii: "0")
        else { return nil }
        return String(decoding: digits, as: UTF8.self)
    }

    /// Reads a string of printable ASCII whose only escapes are slashes: some languages escape them in every receipt.
    private mutating func text() -> String? {
        guard skip("\""), let base = bytes.baseAddress, at < bytes.count,
            let quote = memchr(base + at, Int32(UInt8(ascii: "\"")), bytes.count - at)
        else { return nil }
        let end = UnsafeRawPointer(quote) - base
        let inside = UnsafeRawBufferPointer(rebasing: bytes[at..<end])
        at = end + 1
        guard inside.isPrintableASCII else { return nil }
        guard memchr(base + end - inside.count, Int32(UInt8(ascii: "\\")), inside.count) != nil else {
            return String(decoding: inside, as: UTF8.self)
        }
        return inside.withoutEscapedSlashes.map { String(decoding: $0, as: UTF8.self) }
    }

    private mutating func skip(_ mark: Unicode.Scalar) -> Bool {
        skipSpace()
        guard at < bytes.count, bytes[at] == UInt8(ascii: mark) else { return false }
        at += 1
        return true
    }

    private mutating func skipWord(_ word: StaticString) -> Bool {
        let letters = UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard bytes.count - at >= letters.count, bytes[at..<(at + letters.count)].elementsEqual(letters) else {
            return false
        }
        at += letters.count
        return true
    }

    private mutating func skipSpace() {
        while at < bytes.count, bytes[at] == UInt8(ascii: " ") || bytes[at] == UInt8(ascii: "\t") { at += 1 }
    }

    /// The values of a line's keys. An unknown key is ignored; a key that comes twice needs `CarefulLine`.
    private struct Fields {
        private var seen: Set<String> = []
        private var read = ImportLine(app: "", customer: "")

        /// The line; nil where it lacks what every ordinary line has.
        var line: ImportLine? {
            read.app.isEmpty || read.customer.isEmpty || read.receipt == nil ? nil : read
        }

        /// Stores a value; returns false when the line needs `CarefulLine`.
        mutating func take(_ key: String, _ value: Value) -> Bool {
            guard seen.insert(key).inserted else { return false }
            switch (key, value) {
            case ("app", .text(let text)): read.app = text
            case ("customer", .text(let text)): read.customer = text
            case ("receipt", .text(let text)): read.receipt = text
            case ("storefront", .text(let text)): read.storefront = text
            case ("currency", .text(let text)): read.currency = text
            case ("product", .text(let text)): read.product = text
            case ("price", .text(let text)), ("price", .number(let text)):
                read.priceMilliunits = Milliunits(decimal: text)?.count
                return read.priceMilliunits != nil
            case ("expires", .text(let text)):
                read.expiresAt = Instant(iso8601: text)
                return read.expiresAt != nil
            case ("provisional_until", .text(let text)):
                read.provisionalUntil = Instant(iso8601: text)
                return read.provisionalUntil != nil
            case ("app", _), ("customer", _), ("receipt", _), ("signed_transaction", _), ("transaction_id", _):
                return false
            case ("storefront", .number), ("currency", .number), ("product", .number), ("expires", .number),
                ("provisional_until", .number):
                return false
            case (_, .text), (_, .number), (_, .null): break
            }
            return true
        }
    }
}

extension UInt8 {
    fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
}

extension UnsafeRawBufferPointer {
    /// Whether all bytes are printable ASCII. Without an early exit the compiler processes many bytes at a time.
    fileprivate var isPrintableASCII: Bool {
        var odd: UInt8 = 0
        for byte in self { odd |= (byte < 0x20 ? 1 : 0) | (byte & 0x80) }
        return odd == 0
    }

    /// The bytes with `\/` as `/`; nil when they contain another escape.
    fileprivate var withoutEscapedSlashes: [UInt8]? {
        var plain: [UInt8] = []
        plain.reserveCapacity(count)
        var at = 0
        while at < count {
            if self[at] == UInt8(ascii: "\\") {
                at += 1
                guard at < count, self[at] == UInt8(ascii: "/") else { return nil }
            }
            plain.append(self[at])
            at += 1
        }
        return plain
    }
}

/// Any line, read by Foundation's decoder, which also reports the mistake in a bad one.
struct CarefulLine: Decodable {
    private let app: String
    private let customer: String
    private let receipt: String?
    private let signed_transaction: String?
    private let transaction_id: String?
    private let storefront: String?
    private let price: Milliunits?
    private let currency: String?
    private let product: String?
    private let expires: ISOInstant?
    private let provisional_until: ISOInstant?

    /// Reads a line. Throws one sentence about its mistake.
    static func read(_ bytes: UnsafeRawBufferPointer) throws -> ImportLine {
        let line: CarefulLine
        do {
            line = try JSONDecoder().decode(CarefulLine.self, from: Data(bytes))
        } catch let error as DecodingError {
            throw Failure(sentence(for: error))
        }
        return ImportLine(
            app: line.app, customer: line.customer, receipt: line.receipt,
            signedTransaction: line.signed_transaction, transactionID: line.transaction_id, storefront: line.storefront,
            priceMilliunits: line.price?.count, currency: line.currency, product: line.product,
            expiresAt: line.expires?.instant, provisionalUntil: line.provisional_until?.instant)
    }

    private static func sentence(for error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, _): return "\(key.stringValue) is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            guard let key = context.codingPath.last else { return "this is no JSON object" }
            return "\(key.stringValue) is not text"
        case .dataCorrupted(let context):
            guard let key = context.codingPath.last else { return "this is not JSON" }
            return "\(key.stringValue): \(context.debugDescription)"
        @unknown default: return "this cannot be read"
        }
    }

    /// An instant in ISO 8601.
    private struct ISOInstant: Decodable {
        let instant: Instant

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let instant = Instant(iso8601: text) else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "'\(text)' is no instant; write 2026-11-20T12:00:00Z")
            }
            self.instant = instant
        }
    }
}
