import Foundation
import JSON
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

/// A reader of ordinary lines: a flat object of plain texts and numbers, each key once. An import of millions of lines
/// would otherwise spend its time in the decoder. It returns nil for every unusual line, which `CarefulLine` then reads.
/// For every line that this one reads, both give the same result.
struct QuickLine {
    /// The keys whose values are never null, and those whose values may be. All of them are texts.
    private static let needed: Set = ["app", "customer", "receipt", "signed_transaction", "transaction_id"]
    private static let optional: Set = ["storefront", "currency", "product", "expires", "provisional_until"]

    private var seen: Set<String> = []
    private var line = ImportLine(app: "", customer: "")

    /// Reads the line's fields; nil says only that `CarefulLine` is needed.
    static func read(_ bytes: UnsafeRawBufferPointer) -> ImportLine? {
        guard let document = JSONDocument(object: Array(bytes)) else { return nil }
        var reader = QuickLine()
        for key in document.keys(JSONDocument.root) {
            guard let name = document.plainText(key), reader.take(name, document, at: key + 1) else { return nil }
        }
        let line = reader.line
        return line.app.isEmpty || line.customer.isEmpty || line.receipt == nil ? nil : line
    }

    /// Stores a value; returns false when the line needs `CarefulLine`.
    private mutating func take(_ key: String, _ document: JSONDocument, at index: Int) -> Bool {
        guard seen.insert(key).inserted else { return false }
        switch document.nodes[index].kind {
        case .null: return !Self.needed.contains(key)
        case .number where key == "price": return document.plainNumber(index).map { take(key, $0) } ?? false
        case .number: return !Self.needed.contains(key) && !Self.optional.contains(key)
        case .string, .escapedString: return document.plainText(index).map { take(key, $0) } ?? false
        case .boolean, .array, .object: return false
        }
    }

    /// Stores a text; an unknown key is ignored.
    private mutating func take(_ key: String, _ text: String) -> Bool {
        switch key {
        case "app": line.app = text
        case "customer": line.customer = text
        case "receipt": line.receipt = text
        case "storefront": line.storefront = text
        case "currency": line.currency = text
        case "product": line.product = text
        case "price":
            line.priceMilliunits = Milliunits(decimal: text)?.count
            return line.priceMilliunits != nil
        case "expires":
            line.expiresAt = Instant(iso8601: text)
            return line.expiresAt != nil
        case "provisional_until":
            line.provisionalUntil = Instant(iso8601: text)
            return line.provisionalUntil != nil
        default: return !Self.needed.contains(key)
        }
        return true
    }
}

extension JSONDocument {
    /// Returns the text of a key or string of printable ASCII whose only escapes are slashes, which some languages escape
    /// in every receipt; nil for any other.
    fileprivate func plainText(_ index: Int) -> String? {
        let node = nodes[index]
        return bytes[node.content].withUnsafeBytes { content in
            guard content.isPrintableASCII else { return nil }
            guard node.kind == .escapedString else { return String(decoding: content, as: UTF8.self) }
            return content.withoutEscapedSlashes.map { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// Returns a short number without sign and exponent. `CarefulLine` might round longer ones.
    fileprivate func plainNumber(_ index: Int) -> String? {
        let text = String(decoding: bytes[nodes[index].content], as: UTF8.self)
        return text.utf8.count <= 15 && text.allSatisfy { $0 == "." || $0.isNumber } ? text : nil
    }
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

/// Any line, read by Foundation's decoder, which also reports the mistake in a bad one. That decoder accepts more than
/// JSON, such as a comma before the end and UTF-16, so the project's own reader looks first.
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
            try requireKeysOnce(in: JSONDocument(Array(bytes)))
            line = try JSONDecoder().decode(CarefulLine.self, from: Data(bytes))
        } catch let error as NotJSON {
            throw Failure("this is \(error.reason)")
        } catch let error as DecodingError {
            throw Failure(sentence(for: error))
        }
        for (name, text) in [("storefront", line.storefront), ("product", line.product)]
        where text?.utf8.contains(0) == true {
            throw Failure("\(name) has a NUL, which no text of PostgreSQL can hold")
        }
        return ImportLine(
            app: line.app, customer: line.customer, receipt: line.receipt,
            signedTransaction: line.signed_transaction, transactionID: line.transaction_id, storefront: line.storefront,
            priceMilliunits: line.price?.count, currency: line.currency, product: line.product,
            expiresAt: line.expires?.instant, provisionalUntil: line.provisional_until?.instant)
    }

    /// Throws when the line has a key twice. Readers differ in which of the values counts.
    private static func requireKeysOnce(in document: JSONDocument) throws {
        var keys: Set<String> = []
        for key in document.keys(JSONDocument.root).map({ document.unescaped(document.nodes[$0]) })
        where !keys.insert(key).inserted {
            throw Failure("\(key) is there twice")
        }
    }

    private static func sentence(for error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, _): return "\(key.stringValue) is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            guard let key = context.codingPath.last else { return "this is no JSON object" }
            return "\(key.stringValue) is not text"
        case .dataCorrupted(let context):
            guard let key = context.codingPath.last else {
                return "a text in it is not UTF-8, or has a control character or half a surrogate pair"
            }
            return "\(key.stringValue): \(context.debugDescription)"
        @unknown default: return "this cannot be read"
        }
    }

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
