import Foundation

/// The control calls about notifications.
extension Simulator {
    /// Sends notifications about what happens from now on.
    package func notify(_ options: NotificationOptions) { notifications.start(options, at: now) }

    func startNotifications(_ body: [UInt8]) throws -> SimulatorReply {
        let wanted = try JSONDecoder().decode(NotificationOptions.self, from: Data(body))
        if let mistake = wanted.mistake { return .refused(400, mistake) }
        notify(wanted)
        return try .json(wanted)
    }

    func stopNotifications() throws -> SimulatorReply {
        notifications.stop()
        return try .json(["url": String?.none])
    }

    func notificationList(_ query: [URLQueryItem]) throws -> SimulatorReply {
        collectNotifications()
        let customer = query.first { $0.name == "customer" }?.value
        let index = customer.map { CustomerName.index(of: $0) }
        let hasPayloads = query.contains { $0.name == "payloads" && $0.value == "true" }
        let found = notifications.made().filter { made in index.map { $0 == made.occasion.account } ?? true }
        return try .json(
            found.map { made in
                NotificationTruth(made, payload: hasPayloads ? try signedPayload(of: made) : nil)
            })
    }
}

/// A notification that the store made.
package struct NotificationTruth: Codable, Sendable {
    /// One attempt to send it.
    package struct Attempt: Codable, Sendable {
        /// In milliseconds since 1970.
        package var at: Int64
        /// Apple's word for the result.
        package var result: String

        enum CodingKeys: String, CodingKey {
            case result
            case at = "at_ms"
        }
    }

    /// Apple's id.
    package var notificationUUID: String
    /// Apple's type.
    package var type: String
    /// Apple's subtype.
    package var subtype: String?
    /// The customer; nil for tests and summaries.
    package var customer: String?
    /// `Production` or `Sandbox`.
    package var environment: StoreEnvironment
    /// The transaction it is about.
    package var transactionID: String?
    /// The subscription or purchase it is about.
    package var originalTransactionID: String?
    /// When it was signed, in milliseconds since 1970.
    package var signed: Int64
    /// Whether it never arrives.
    package var isDropped: Bool
    /// The attempts until now.
    package var attempts: [Attempt]
    /// The signed text, if that was asked for.
    package var signedPayload: String?

    enum CodingKeys: String, CodingKey {
        case type, subtype, customer, environment, attempts
        case notificationUUID = "notification_uuid"
        case transactionID = "transaction_id"
        case originalTransactionID = "original_transaction_id"
        case signed = "signed_ms"
        case isDropped = "dropped"
        case signedPayload = "signed_payload"
    }

    init(_ made: MadeNotification, payload: String?) {
        let occasion = made.occasion
        notificationUUID = made.uuid
        type = occasion.name.type
        subtype = occasion.name.subtype
        customer = occasion.account.map { CustomerName.first($0) }
        environment = occasion.environment
        transactionID = occasion.transactionID
        originalTransactionID = occasion.originalTransactionID
        signed = occasion.at.milliseconds
        isDropped = made.isDropped
        attempts = made.attempts.map { Attempt(at: $0.at.milliseconds, result: $0.result.rawValue) }
        signedPayload = payload
    }
}
