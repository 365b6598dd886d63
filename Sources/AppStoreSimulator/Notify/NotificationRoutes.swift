import Foundation
import NIOPosix

extension Simulator {
    /// Sends notifications about what happens from now on.
    package func notify(_ options: NotificationOptions) { notifications.start(options, at: now) }

    /// Answers the control call that says where notifications go.
    func startNotifications(_ body: [UInt8]) throws -> SimulatorReply {
        let wanted = try JSONDecoder().decode(NotificationOptions.self, from: Data(body))
        if let mistake = wanted.mistake { return .refused(400, mistake) }
        notify(wanted)
        return try .json(wanted)
    }

    /// Answers the control call that ends them.
    func stopNotifications() throws -> SimulatorReply {
        notifications.stop()
        return try .json(["url": String?.none])
    }

    /// Answers the control call that lists the notifications that were made.
    func notificationList(_ query: [URLQueryItem]) throws -> SimulatorReply {
        collectNotifications()
        let customer = query.first { $0.name == "customer" }?.value
        let index = customer.flatMap { CustomerName.index(of: $0) }
        let hasPayloads = query.contains { $0.name == "payloads" && $0.value == "true" }
        // A name that no customer can have is about no account, as tests and summaries are.
        let found = notifications.made().filter { made in
            customer == nil || (index != nil && index == made.occasion.account)
        }
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

    package var notificationUUID: String
    package var type: String
    package var subtype: String?
    /// The customer; nil for tests and summaries.
    package var customer: String?
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

/// Where the store sends notifications, and what happens to them on the way.
package struct NotificationOptions: Codable, Sendable {
    package static let delaySecondsMax = 86_400.0

    /// The form of the notifications.
    package enum Version: String, Codable, Sendable, CaseIterable {
        /// Unsigned bodies with the shared secret.
        case first = "1"
        /// Signed bodies.
        case second = "2"
    }

    package var url: String
    package var version = Version.second
    /// The share, 0 to 1, that never arrives.
    package var shareDropped = 0.0
    /// The share that arrives twice.
    package var shareDoubled = 0.0
    /// The share that later ones overtake.
    package var shareReordered = 0.0
    /// The longest delay of each, in seconds.
    package var delaySeconds = 0.0

    /// Creates options for an address, with notifications that arrive once, in order and at once.
    package init(url: String) {
        self.url = url
    }

    enum CodingKeys: String, CodingKey {
        case url, version
        case shareDropped = "share_dropped"
        case shareDoubled = "share_doubled"
        case shareReordered = "share_reordered"
        case delaySeconds = "delay_seconds"
    }

    /// Reads the body of the control call.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        url = try values.decode(String.self, forKey: .url)
        version = try values.decodeIfPresent(Version.self, forKey: .version) ?? .second
        shareDropped = try values.decodeIfPresent(Double.self, forKey: .shareDropped) ?? 0
        shareDoubled = try values.decodeIfPresent(Double.self, forKey: .shareDoubled) ?? 0
        shareReordered = try values.decodeIfPresent(Double.self, forKey: .shareReordered) ?? 0
        delaySeconds = try values.decodeIfPresent(Double.self, forKey: .delaySeconds) ?? 0
    }

    /// Returns what is wrong with them; nil when they can be used.
    package var mistake: String? {
        guard NotificationAddress(url) != nil else { return "url is an address such as http://localhost:8080/path" }
        guard [shareDropped, shareDoubled, shareReordered].allSatisfy((0...1).contains) else {
            return "shares are between 0 and 1"
        }
        guard (0...Self.delaySecondsMax).contains(delaySeconds) else {
            return "delay_seconds is between 0 and \(Int(Self.delaySecondsMax))"
        }
        return nil
    }
}

/// A parsed address over HTTP.
struct NotificationAddress: Sendable {
    let host: String
    let port: Int
    /// The path with its query.
    let path: String

    init?(_ text: String) {
        guard let url = URL(string: text), url.scheme?.lowercased() == "http", let host = url.host, !host.isEmpty else {
            return nil
        }
        let port = url.port ?? 80
        guard (1...65_535).contains(port) else { return nil }
        self.host = host
        self.port = port
        path = (url.path.isEmpty ? "/" : url.path) + (url.query.map { "?\($0)" } ?? "")
    }
}

extension Simulator {
    /// Notifications of one account are sent one after the other, those of many accounts at once.
    private static let lanes = 32
    private static let pauseMilliseconds: Int64 = 20

    /// Makes notifications of everything that has happened until now.
    func collectNotifications() {
        guard let start = notifications.collectsSince else { return }
        let moment = now
        notifications.add(accounts().flatMap { $0.occasions(since: start) }, until: moment)
    }

    /// Sends notifications until the task is cancelled. An answer that does not come holds up one lane only.
    func notify(on group: MultiThreadedEventLoopGroup) async {
        let courier = NotificationCourier(group: group)
        let lanes = (0..<Self.lanes).map { _ in AsyncStream.makeStream(of: Due.self) }
        await withTaskGroup(of: Void.self) { tasks in
            for lane in lanes {
                tasks.addTask {
                    for await due in lane.stream { await self.send(due.delivery, of: due.notification, by: courier) }
                }
            }
            await dispatch(to: lanes.map(\.continuation))
            tasks.cancelAll()
        }
    }

    private typealias Due = (delivery: NotificationDelivery, notification: MadeNotification)

    /// Gives what is due to the lanes until the task is cancelled.
    private func dispatch(to lanes: [AsyncStream<Due>.Continuation]) async {
        while !Task.isCancelled {
            let began = ContinuousClock.now
            collectNotifications()
            for due in notifications.takeDue(at: now) {
                lanes[(due.notification.occasion.account ?? 0) % Self.lanes].yield(due)
            }
            // A store with many customers is not looked at all the time.
            let pause = max(.milliseconds(Self.pauseMilliseconds), (ContinuousClock.now - began) * 4)
            guard (try? await Task.sleep(for: pause)) != nil else { return }
        }
    }

    /// Posts one notification and notes how that went.
    private func send(
        _ delivery: NotificationDelivery, of notification: MadeNotification, by courier: NotificationCourier
    ) async {
        guard let options = notifications.options, let address = NotificationAddress(options.url) else { return }
        guard !notification.isDropped else { return notifications.note(.noResponse, of: delivery, at: now) }
        do {
            guard let body = try body(of: notification, options.version) else { return }
            notifications.note(await courier.post(body, to: address), of: delivery, at: now)
        } catch {
            notifications.note(.invalidResponse, of: delivery, at: now)
        }
    }
}
