/// The state of a price increase that needs the customer's consent.
enum PriceConsent: Sendable {
    case asked
    case given

    /// The value of `price_consent_status` and `price_increase_status`.
    var status: String {
        switch self {
        case .asked: "0"
        case .given: "1"
        }
    }
}
