/// An error of the App Store Server API, with Apple's code. The HTTP status is the beginning of the code.
struct ServerError: Error, Sendable {
    let code: Int64
    let message: String

    static let invalidRevision = ServerError(code: 4_000_005, message: "Invalid request revision.")
    static let invalidTransactionID = ServerError(code: 4_000_006, message: "Invalid transaction id.")
    static let invalidOriginalID = ServerError(code: 4_000_008, message: "Invalid original transaction id.")
    static let invalidDays = ServerError(code: 4_000_009, message: "Invalid extend by days value.")
    static let invalidReason = ServerError(code: 4_000_010, message: "Invalid extend reason code.")
    static let invalidRequestID = ServerError(code: 4_000_011, message: "Invalid request identifier.")
    static let startAfterEnd = ServerError(code: 4_000_013, message: "Start date is later than the end date.")
    static let invalidStart = ServerError(code: 4_000_015, message: "Invalid start date.")
    static let invalidEnd = ServerError(code: 4_000_016, message: "Invalid end date.")
    static let invalidTestToken = ServerError(code: 4_000_020, message: "Invalid test notification token.")
    static let invalidSort = ServerError(code: 4_000_021, message: "Invalid sort.")
    static let invalidProductType = ServerError(code: 4_000_022, message: "Invalid product type.")
    static let invalidProductID = ServerError(code: 4_000_023, message: "Invalid product id.")
    static let invalidGroup = ServerError(code: 4_000_024, message: "Invalid subscription group identifier.")
    static let invalidOwnership = ServerError(code: 4_000_026, message: "Invalid in-app ownership type.")
    static let noCountries = ServerError(code: 4_000_027, message: "The list of storefront country codes is empty.")
    static let invalidCountry = ServerError(code: 4_000_028, message: "Invalid storefront country code.")
    static let invalidRevoked = ServerError(code: 4_000_030, message: "Invalid revoked value.")
    static let invalidStatus = ServerError(code: 4_000_031, message: "Invalid status.")
    static let notConsented = ServerError(code: 4_000_035, message: "Invalid customer consented.")
    static let invalidDelivery = ServerError(code: 4_000_036, message: "Invalid delivery status.")
    static let invalidSample = ServerError(code: 4_000_041, message: "Invalid sample content provided.")
    static let notConsumable = ServerError(code: 4_000_043, message: "The transaction is not a consumable.")
    static let appTransaction = ServerError(code: 4_000_048, message: "App transaction ids aren't supported here.")
    static let invalidToken = ServerError(
        code: 4_000_183, message: "Invalid request. The app account token field must be a valid UUID.")
    static let familyTransaction = ServerError(
        code: 4_000_185,
        message: "Invalid request. Family Sharing transactions aren't supported by this endpoint.")
    static let notOriginal = ServerError(
        code: 4_000_187,
        message: "Invalid request. The transaction ID provided is not an original transaction ID.")
    static let notExtendable = ServerError(code: 4_030_004, message: "The subscription is not eligible to extend.")
    static let extendedTooOften = ServerError(code: 4_030_005, message: "The subscription has its most extensions.")
    static let familyExtension = ServerError(
        code: 4_030_007, message: "Subscriptions from Family Sharing are not eligible to extend.")
    static let accountNotFound = ServerError(code: 4_040_001, message: "Account not found.")
    static let originalNotFound = ServerError(code: 4_040_005, message: "Original transaction id not found.")
    static let noAddress = ServerError(code: 4_040_007, message: "App Store Server Notification URL not found.")
    static let testNotFound = ServerError(code: 4_040_008, message: "Test notification not found.")
    static let massNotFound = ServerError(code: 4_040_009, message: "Status request not found.")
    static let transactionNotFound = ServerError(code: 4_040_010, message: "Transaction id not found.")
    static let tooMany = ServerError(code: 4_290_000, message: "Rate limit exceeded.")

    static func badRequest(_ message: String) -> ServerError { ServerError(code: 4_000_000, message: message) }

    var reply: SimulatorReply {
        var json = JSONWriter(reserving: 128)
        json.object { json in
            json.number("errorCode", code)
            json.text("errorMessage", message)
        }
        return SimulatorReply(
            code: Int(code / 10_000), headers: [("Content-Type", "application/json")], body: json.bytes)
    }

    /// The refusal of a call that came too early, with the instant at which it may come again.
    static func tooMany(until moment: StoreTime) -> SimulatorReply {
        var reply = tooMany.reply
        reply.headers.append(("Retry-After", String(moment.milliseconds)))
        return reply
    }
}
