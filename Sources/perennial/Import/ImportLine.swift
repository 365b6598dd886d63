import Foundation
import Subscriptions
import Tracking

/// One line of an import: `{"app": …, "customer": …, "receipt": …}` and, where known, `storefront`, `price`, `currency`.
struct ImportLine: Decodable {
    let app: String
    let customer: String
    let receipt: String
    let storefront: String?
    let price: Price?
    let currency: String?

    /// A price as a number or as text, read without rounding.
    struct Price: Decodable {
        let milliunits: Int64

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            let text: String
            do {
                text = try container.decode(String.self)
            } catch {
                text = "\(try container.decode(Decimal.self))"
            }
            guard let milliunits = PriceText.milliunits(text) else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "'\(text)' is no price; write 4.99, with at most 3 decimals")
            }
            self.milliunits = milliunits
        }
    }

    /// The submission a line stands for. Throws one sentence about what is wrong with it.
    static func submission(in bytes: [UInt8], with decoder: JSONDecoder) throws -> Submission {
        let line: ImportLine
        do {
            line = try decoder.decode(ImportLine.self, from: Data(bytes))
        } catch let error as DecodingError {
            throw Failure(sentence(for: error))
        }
        guard !line.app.isEmpty else { throw Failure("app is empty; give the app's bundle id") }
        guard (line.price == nil) == (line.currency == nil) else { throw Failure("price and currency go together") }
        return Submission(
            bundleID: BundleID(line.app), customer: line.customer, receipt: line.receipt, imported: true,
            storefront: line.storefront, priceMilliunits: line.price?.milliunits, currency: line.currency)
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
}
