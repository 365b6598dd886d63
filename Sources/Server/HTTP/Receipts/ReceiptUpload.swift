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
