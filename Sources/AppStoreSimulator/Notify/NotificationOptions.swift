import Foundation

/// Where the store sends notifications, and what happens to them on the way.
package struct NotificationOptions: Codable, Sendable {
    /// The longest delay, in seconds.
    package static let delaySecondsMax = 86_400.0

    /// The form of the notifications.
    package enum Version: String, Codable, Sendable, CaseIterable {
        /// Unsigned bodies with the shared secret.
        case first = "1"
        /// Signed bodies.
        case second = "2"
    }

    /// An address over HTTP.
    package var url: String
    /// The form.
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
        self.host = host
        port = url.port ?? 80
        path = (url.path.isEmpty ? "/" : url.path) + (url.query.map { "?\($0)" } ?? "")
    }
}

/// The fate of one notification, drawn by the seed.
struct NotificationFate: Sendable {
    let isDropped: Bool
    let isDoubled: Bool
    /// Milliseconds before the first attempt.
    let delay: Int64

    init(of uuid: (UInt64, UInt64), _ options: NotificationOptions, scale: TimeScale) {
        var numbers = SeededGenerator(seed: uuid.0, stream: uuid.1)
        let (drop, double, order) = (numbers.unit(), numbers.unit(), numbers.unit())
        isDropped = drop < options.shareDropped
        isDoubled = double < options.shareDoubled
        let wait = options.delaySeconds * 1000 * numbers.unit()
        let behind = order < options.shareReordered ? scale.monthMilliseconds * numbers.between(0.02, 0.15) : 0
        delay = Int64(wait + behind)
    }
}
