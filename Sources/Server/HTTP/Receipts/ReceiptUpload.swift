import Foundation
import Subscriptions
import Tracking

/// The body of `POST /v1/apps/{bundle}/receipts`.
struct ReceiptUpload: KnownFields {
    /// The operator's own id for the customer.
    let customer: String
    /// The receipt in base64, in the form that the device gave.
    let receipt: String
    /// The storefront the device saw.
    let storefront: String?
    /// The price the device saw.
    let price: Milliunits?
    /// The currency of that price, ISO 4217.
    let currency: String?

    enum CodingKeys: CodingKey, CaseIterable {
        case customer, receipt, storefront, price, currency
    }

    private static let storefrontCharactersMax = 32

    /// Returns the submission for an app. Throws a problem when a field cannot be stored.
    func submission(for bundleID: BundleID) throws -> Submission {
        guard currency.map(Self.isCurrency) ?? true else {
            throw Problem(.invalid, "The body's currency is not an ISO 4217 code of three letters, like USD.")
        }
        guard storefront.map(Self.isStorefront) ?? true else {
            throw Problem(.invalid, "The body's storefront is not a storefront of the App Store, like USA or 143441.")
        }
        return Submission(
            bundleID: bundleID, customer: customer, receipt: receipt, storefront: storefront,
            priceMilliunits: price?.count, currency: currency?.uppercased())
    }

    private static func isCurrency(_ text: String) -> Bool {
        text.utf8.count == 3 && text.utf8.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20) }
    }

    private static func isStorefront(_ text: String) -> Bool {
        (1...storefrontCharactersMax).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}

/// A price in thousandths of the currency's unit. It is read from a decimal exactly, without binary fractions.
struct Milliunits: Decodable, Hashable, Sendable {
    /// The price in thousandths: 4.99 is 4990.
    let count: Int64

    private static let wholeDigitsMax = 12

    /// Reads digits with an optional fraction, like `4.99`. Returns nil for anything else, and for parts of a
    /// thousandth.
    init?(decimal text: String) {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, (1...Self.wholeDigitsMax).contains(whole.utf8.count), Self.areDigits(whole)
        else {
            return nil
        }
        var fraction = parts.count > 1 ? parts[1] : "0"
        guard !fraction.isEmpty, Self.areDigits(fraction) else { return nil }
        while fraction.last == "0" { fraction.removeLast() }
        guard fraction.utf8.count <= 3 else { return nil }
        let padded = fraction + String(repeating: "0", count: 3 - fraction.utf8.count)
        guard let count = Int64(whole + padded) else { return nil }
        self.count = count
    }

    /// Decodes a price from a JSON number or a string with a decimal.
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text: String
        do {
            text = try container.decode(String.self)
        } catch DecodingError.typeMismatch {
            text = try container.decode(Decimal.self).description
        }
        guard let price = Milliunits(decimal: text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a price")
        }
        self = price
    }

    private static func areDigits(_ text: Substring) -> Bool {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
