import Foundation
import Ledger
import Subscriptions

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
