import Foundation

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

    /// Reads the body; an object of another form is a bad request.
    func read<Value: Decodable>(_ type: Value.Type) throws(ServerError) -> Value {
        do {
            return try JSONDecoder().decode(type, from: Data(body))
        } catch {
            throw .badRequest("Bad request.")
        }
    }
}
