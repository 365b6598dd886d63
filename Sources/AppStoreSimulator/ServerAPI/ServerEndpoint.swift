import Crypto
import Foundation
import Synchronization

/// A call that the App Store Server API knows. The raw values are the names in control calls.
package enum ServerEndpoint: String, Codable, Sendable, CaseIterable {
    /// Get All Subscription Statuses.
    case subscriptions
    /// Get Transaction History, version 1 and 2.
    case history
    /// Get Transaction Info.
    case transaction
    /// Get Refund History.
    case refunds
    /// Request a Test Notification.
    case testNotification = "test_notification"
    /// Get Test Notification Status.
    case testStatus = "test_status"
    /// Extend a Subscription Renewal Date.
    case extend
    /// Extend Subscription Renewal Dates for All Active Subscribers.
    case massExtension = "mass_extension"
    /// Get Status of Subscription Renewal Date Extensions.
    case massStatus = "mass_status"
    /// Send Consumption Information, version 1 and 2.
    case consumption
    /// Set App Account Token.
    case accountToken = "account_token"

    /// Method and path below `inApps` of each; a star stands for an argument.
    fileprivate static let routes: [(endpoint: ServerEndpoint, method: String, path: String)] = [
        (.subscriptions, "GET", "v1/subscriptions/*"),
        (.history, "GET", "v2/history/*"),
        (.history, "GET", "v1/history/*"),
        (.transaction, "GET", "v1/transactions/*"),
        (.refunds, "GET", "v2/refund/lookup/*"),
        (.testNotification, "POST", "v1/notifications/test"),
        (.testStatus, "GET", "v1/notifications/test/*"),
        (.extend, "PUT", "v1/subscriptions/extend/*"),
        (.massExtension, "POST", "v1/subscriptions/extend/mass"),
        (.massStatus, "GET", "v1/subscriptions/extend/mass/*/*"),
        (.consumption, "PUT", "v2/transactions/consumption/*"),
        (.consumption, "PUT", "v1/transactions/consumption/*"),
        (.accountToken, "PUT", "v1/transactions/*/appAccountToken"),
    ]
}

/// One call of the App Store Server API.
struct ServerCall: Sendable {
    let environment: StoreEnvironment
    let endpoint: ServerEndpoint
    /// Whether the path names the first version of a call that has two.
    let isFirstVersion: Bool
    let arguments: [String]
    let query: [URLQueryItem]
    let body: [UInt8]

    /// Returns the environment and the path below `inApps`; nil for any other path.
    static func place(_ path: String) -> (environment: StoreEnvironment, path: [Substring])? {
        let parts = path.split(separator: "/")
        switch (parts.first, parts.dropFirst().first) {
        case ("inApps", _): return (.production, Array(parts.dropFirst()))
        case ("sandbox", "inApps"): return (.sandbox, Array(parts.dropFirst(2)))
        default: return nil
        }
    }

    /// Reads a request; nil for a path below `inApps` that Apple does not have.
    init?(_ request: SimulatorRequest, at environment: StoreEnvironment, path: [Substring]) {
        let route = ServerEndpoint.routes.first { route in
            let wanted = route.path.split(separator: "/")
            return route.method == request.method && wanted.count == path.count
                && zip(wanted, path).allSatisfy { $0 == "*" || $0 == $1 }
        }
        guard let route else { return nil }
        self.environment = environment
        endpoint = route.endpoint
        isFirstVersion = path.first == "v1"
        arguments = zip(route.path.split(separator: "/"), path).filter { $0.0 == "*" }.map { String($0.1) }
        query = URLComponents(string: request.path)?.queryItems ?? []
        body = request.body
    }

    /// The values of a parameter, which may be there several times.
    func values(_ name: String) -> [String] { query.filter { $0.name == name }.compactMap(\.value) }

    /// Reads the first value of a parameter, if there is one; throws `refusal` for a value that `read` refuses.
    func value<Value>(
        _ name: String, orElse refusal: ServerError, _ read: (String) -> Value?
    ) throws(ServerError) -> Value? {
        guard let text = values(name).first else { return nil }
        guard let found = read(text) else { throw refusal }
        return found
    }

    /// Reads the body; an object of another form is a bad request.
    func read<Value: Decodable>(_ type: Value.Type) throws(ServerError) -> Value {
        guard let value = try? JSONDecoder().decode(type, from: Data(body)) else { throw .badRequest("Bad request.") }
        return value
    }
}

/// The admission of a call by its bearer token ("Generating JSON Web Tokens for API requests").
extension Simulator {
    private struct TokenClaims: Decodable {
        let iss: String
        /// Seconds since 1970, as `exp`.
        let iat: Double
        let exp: Double
        let aud: String
        let bid: String
    }

    /// The longest time between `iat` and `exp`.
    private static let tokenSecondsMax = 3600.0

    /// Returns whether Apple admits a call about this store's app now.
    func admits(_ request: SimulatorRequest) -> Bool {
        let words = (request.authorization ?? "").split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bearer" else { return false }
        let verified: (claims: TokenClaims, key: RegisteredKeys.Key)? = try? serverKeys.verified(words[1])
        guard let (claims, key) = verified else { return false }
        let seconds = Double(callClock.now.milliseconds) / 1000
        return claims.iss == key.issuerID && claims.bid == options.bundleID && claims.aud == "appstoreconnect-v1"
            && claims.iat <= seconds && claims.exp > seconds && claims.exp - claims.iat <= Self.tokenSecondsMax
    }
}

/// A key with which servers sign their calls of the pretend Server API, beside those that are registered.
package struct PretendServerKey: Sendable {
    /// Its id, and that of its issuer.
    package static let (id, issuerID) = ("PRETENDKEY", "57246542-96fe-1a63-e053-0824d011072a")

    private let key: P256.Signing.PrivateKey

    /// Creates a new key.
    package init() { key = P256.Signing.PrivateKey() }

    /// Restores a key from its PEM form; throws where the text is none.
    package init(pem: String) throws { key = try P256.Signing.PrivateKey(pemRepresentation: pem) }

    /// The private key in PEM form, as App Store Connect hands it out.
    package var pem: String { key.pemRepresentation + "\n" }

    fileprivate var registered: RegisteredKeys.Key {
        RegisteredKeys.Key(issuerID: Self.issuerID, publicKey: key.publicKey)
    }
}

extension Simulator {
    /// Accepts a key for calls of the Server API about each app that is sold here.
    package func accept(_ key: PretendServerKey) {
        for store in [self, neighbour].compactMap(\.self) {
            store.serverKeys.register(key.registered, id: PretendServerKey.id)
        }
    }
}

/// The rates of the Server API's calls: so many in each second, unlimited unless set.
final class ServerRates: Sendable {
    private struct Second {
        let limit: Int
        var number: Int64 = 0
        var calls = 0
    }

    private let seconds = Mutex<[ServerEndpoint: Second]>([:])

    /// Sets how many calls of each endpoint a second may have.
    func set(_ limit: Int, for endpoints: [ServerEndpoint]) {
        seconds.withLock { seconds in
            for endpoint in endpoints { seconds[endpoint] = Second(limit: limit) }
        }
    }

    func clear() { seconds.withLock { $0 = [:] } }

    /// Counts a call; returns when to come again where that is too many.
    func refusal(of endpoint: ServerEndpoint, at now: StoreTime) -> StoreTime? {
        let number = now.wholeSecond.milliseconds / 1000
        return seconds.withLock { seconds in
            guard var second = seconds[endpoint] else { return nil }
            if second.number != number { (second.number, second.calls) = (number, 0) }
            second.calls += 1
            seconds[endpoint] = second
            return second.calls > second.limit ? StoreTime(milliseconds: (number + 1) * 1000) : nil
        }
    }
}

/// The body of `POST /simulator/rates`.
struct RateRequest: Decodable, Sendable {
    /// Nil means every endpoint.
    let endpoint: ServerEndpoint?
    let perSecond: Int

    enum CodingKeys: String, CodingKey {
        case endpoint
        case perSecond = "per_second"
    }
}

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
        .object(Int(code / 10_000)) { json in
            json.number("errorCode", code)
            json.text("errorMessage", message)
        }
    }

    /// The refusal of a call that came too early, with the instant at which it may come again.
    static func tooMany(until moment: StoreTime) -> SimulatorReply {
        var reply = tooMany.reply
        reply.headers.append(("Retry-After", String(moment.milliseconds)))
        return reply
    }
}

extension Simulator {
    /// The most calls a second that a control call may allow.
    private static let perSecondMax = 1_000_000

    /// Answers the control call that sets the rate of an endpoint.
    func setRate(_ body: [UInt8]) throws -> SimulatorReply {
        let wanted = try JSONDecoder().decode(RateRequest.self, from: Data(body))
        guard (0...Self.perSecondMax).contains(wanted.perSecond) else {
            return .refused(400, "per_second is 0 to \(Self.perSecondMax)")
        }
        let endpoints = wanted.endpoint.map { [$0] } ?? ServerEndpoint.allCases
        serverRates.set(wanted.perSecond, for: endpoints)
        return try .json(["endpoints": endpoints.map(\.rawValue)])
    }

    /// Answers the control call that removes all rates.
    func clearRates() throws -> SimulatorReply {
        serverRates.clear()
        return try .json(["endpoints": [String]()])
    }

    /// The number of admitted calls of the Server API.
    package var serverCallCount: Int { serverConditions.calls }
}
