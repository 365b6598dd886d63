public import Foundation

/// A Perennial server, as one app sees it.
///
/// A service of yours has an API key of scope `read` or `write`. An app on a device has none, because everyone who has
/// the app could read it: a device places no orders and reads no entitlements, it proves with the key of an order what
/// it sends about that order.
///
///     let server = PerennialServer(at: url, app: "com.example.app", key: key)
///     let kim = try await server.entitlements(of: "kim")
///
/// Every call throws a ``PerennialError``, which says what to do, or `CancellationError`.
public struct PerennialServer: Sendable {
    /// The address, such as `https://perennial.example.com`, with the path of a proxy where there is one.
    public let url: URL
    /// The bundle id of the app.
    public let app: String
    /// How requests are sent.
    public let transport: Transport
    /// How long a call may take in seconds, except an upload.
    public let requestSeconds: Double

    /// The API key; nil on a device.
    let key: String?

    /// Makes the value; nothing is sent.
    /// - Parameters:
    ///   - url: The address, with the path of a proxy where there is one.
    ///   - app: The bundle id of the app.
    ///   - key: The API key of a service; nil on a device.
    ///   - transport: How requests are sent.
    ///   - requestSeconds: How long a call may take in seconds. An upload may take ``uploadSeconds``.
    public init(
        at url: URL, app: String, key: String? = nil, transport: Transport = .urlSession, requestSeconds: Double = 10
    ) {
        self.url = url
        self.app = app
        self.key = key
        self.transport = transport
        self.requestSeconds = requestSeconds
    }

    /// How long an upload may take in seconds: the server asks Apple while the caller waits, if need be twice.
    public static let uploadSeconds: Double = 60
    /// The largest answer that is read, in bytes.
    public static let answerBytesMax = 64 << 20
}

extension PerennialServer: CustomStringConvertible {
    /// The address and the app, without the key.
    public var description: String { "\(app) at \(url.absoluteString)" }
}
