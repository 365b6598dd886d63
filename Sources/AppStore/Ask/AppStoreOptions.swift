package import AsyncHTTPClient
import NIOCore
import NIOSSL

/// The addresses and limits for asking Apple.
package struct AppStoreOptions: Sendable {
    /// Apple's production endpoint.
    package static let appleProductionURL = "https://buy.itunes.apple.com/verifyReceipt"
    /// Apple's sandbox endpoint, also for TestFlight and App Review purchases.
    package static let appleSandboxURL = "https://sandbox.itunes.apple.com/verifyReceipt"

    /// The address for production receipts.
    package var productionURL: String
    /// The address for sandbox receipts.
    package var sandboxURL: String
    /// The limit for establishing a connection, TLS included. Takes effect through `clientConfiguration`.
    package var connectTimeout: Duration
    /// The limit for one `verify` with all its calls.
    package var deadline: Duration
    /// The largest answer read, in bytes. Answers with long histories reach several MB.
    package var responseBytesMax: Int
    /// The longest receipt sent, in bytes of Base64; the rest of the request adds less than a kilobyte.
    package var requestBytesMax: Int
    /// The number of connections kept to one endpoint. Takes effect through `clientConfiguration`.
    package var connectionsPerHostMax: Int
    /// The only authorities that may vouch for a store's certificate; nil for the system's. Takes effect through
    /// `clientConfiguration`.
    package var trustedRoots: TrustedRoots?

    /// Creates options with Apple's endpoints and the suggested limits.
    package init(
        productionURL: String = appleProductionURL, sandboxURL: String = appleSandboxURL,
        connectTimeout: Duration = .seconds(5), deadline: Duration = .seconds(30),
        responseBytesMax: Int = 32 * 1024 * 1024, requestBytesMax: Int = 8 * 1024 * 1024,
        connectionsPerHostMax: Int = 64, trustedRoots: TrustedRoots? = nil
    ) {
        self.productionURL = productionURL
        self.sandboxURL = sandboxURL
        self.connectTimeout = connectTimeout
        self.deadline = deadline
        self.responseBytesMax = responseBytesMax
        self.requestBytesMax = requestBytesMax
        self.connectionsPerHostMax = connectionsPerHostMax
        self.trustedRoots = trustedRoots
    }

    /// The required configuration of the `HTTPClient` given to `AppStoreClient.live`. No redirects, because one would
    /// carry the shared secret elsewhere. HTTP/1.1, because one dead HTTP/2 connection would break every call. TLS 1.2
    /// or newer, with every certificate verified.
    package var clientConfiguration: HTTPClient.Configuration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        if let trustedRoots { tls.trustRoots = .certificates(trustedRoots.certificates) }
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: tls, redirectConfiguration: .disallow,
            timeout: .init(connect: .nanoseconds(connectTimeout.wholeNanoseconds)),
            connectionPool: .init(
                idleTimeout: .seconds(20), concurrentHTTP1ConnectionsPerHostSoftLimit: connectionsPerHostMax),
            decompression: .disabled)
        configuration.httpVersion = .http1Only
        return configuration
    }

    /// Returns the address of one store.
    func url(of environment: Endpoint) -> String {
        switch environment {
        case .production: productionURL
        case .sandbox: sandboxURL
        }
    }
}

extension Duration {
    /// The duration in nanoseconds; saturates far beyond any time-out.
    var wholeNanoseconds: Int64 {
        let seconds = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !seconds.overflow else { return components.seconds > 0 ? .max : .min }
        return seconds.partialValue + components.attoseconds / 1_000_000_000
    }

    /// The duration in milliseconds, rounded down.
    var wholeMilliseconds: Int { Int(wholeNanoseconds / 1_000_000) }
}
