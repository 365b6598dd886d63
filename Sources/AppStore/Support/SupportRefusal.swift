/// Why Apple refuses a support call, by its code (Apple: "App Store Server API", error codes).
enum SupportRefusal {
    /// Returns one sentence that says what to do.
    static func sentence(_ code: Int, in environment: Endpoint) -> String {
        "\(reason(code, in: environment)) (\(code))"
    }

    private static func reason(_ code: Int, in environment: Endpoint) -> String {
        switch code {
        case 4_000_006, 4_000_008: "Apple does not take this id of a transaction"
        case 4_000_020: "This is no token of a test notification"
        case 4_000_023: "The app has no subscription product of this id"
        case 4_000_028: "Apple does not know one of the countries; it names them by three letters, such as USA"
        case 4_000_034...4_000_043: "Apple does not take this about the consumption"
        case 4_000_047: "Apple takes nothing about the consumption of this kind of product"
        case 4_000_048: "This is the id of an app transaction, which names no purchase"
        case 4_000_033, 4_000_183: "An account token is a UUID"
        case 4_000_185: "The transaction is shared by Family Sharing, and cannot have a token of its own"
        case 4_000_187: "This is not the id of an original transaction; give the id of the subscription's first one"
        case 4_030_004: "The subscription cannot be extended: it does not run, is in a trial or in a billing retry"
        case 4_030_005: "The subscription has been extended twice within a year, which is the most"
        case 4_030_007: "A subscription that is shared by Family Sharing cannot be extended; extend its buyer's"
        case 4_040_001, 4_040_002: "Apple does not know the customer's account any more"
        case 4_040_003, 4_040_004, 4_000_002: "Apple does not know the app; check its bundle id and its server key"
        case 4_040_005, 4_040_006, 4_040_010:
            "Apple knows no such transaction of the app in \(environment.rawValue); is it one of the other environment?"
        case 4_040_007:
            "App Store Connect has no address for notifications of \(environment.rawValue); enter it there, under App "
                + "Information"
        case 4_040_008: "Apple does not know this test notification, or not yet"
        case 4_040_009: "Apple knows no extension of this product by this request"
        case 4_290_000: "Apple asks for fewer calls; try again later"
        case 5_000_000..<6_000_000: "Apple has a temporary problem; try again later"
        default: "Apple refuses the call"
        }
    }
}
