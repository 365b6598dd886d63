package import AsyncHTTPClient
package import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Subscriptions
import Synchronization

/// The App Store as Perennial sees it: one question each to verifyReceipt and to the Server API. Tests pass their own.
package struct AppStoreClient: Sendable {
    /// Asks Apple about a receipt. Never throws: an outage is an answer too.
    package var verify: @Sendable (AppStoreRequest) async -> AppStoreAnswer
    /// Asks the Server API. Never throws either.
    package var server: ServerAPIClient

    /// Creates a client that answers with `verify`, and by `server` where there is one.
    package init(
        server: ServerAPIClient = .none, verify: @escaping @Sendable (AppStoreRequest) async -> AppStoreAnswer
    ) {
        (self.verify, self.server) = (verify, server)
    }
}

/// The addresses and limits for asking Apple.
package struct AppStoreOptions: Sendable {
    package static let appleProductionURL = "https://buy.itunes.apple.com/verifyReceipt"
    /// Apple's sandbox endpoint, also for TestFlight and App Review purchases.
    package static let appleSandboxURL = "https://sandbox.itunes.apple.com/verifyReceipt"

    /// The address for production receipts.
    package var productionURL: String
    /// The address for sandbox receipts.
    package var sandboxURL: String
    /// The limit for establishing a connection, TLS included. Takes effect through `withClient`.
    package var connectTimeout: Duration
    /// The limit for one `verify` with all its calls.
    package var deadline: Duration
    /// The largest answer read, in bytes. Answers with long histories reach several MB.
    package var responseBytesMax = 32 * 1024 * 1024
    /// The longest receipt sent, in bytes of Base64; the rest of the request adds less than a kilobyte.
    package var requestBytesMax = 8 * 1024 * 1024
    /// The number of connections kept to one endpoint. Takes effect through `withClient`.
    package var connectionsPerHostMax = 64
    /// The only authorities that may vouch for a store's certificate, through `withClient`; nil for the system's.
    package var trustedRoots: TrustedRoots?

    /// Creates options with Apple's endpoints and the suggested limits.
    package init(
        productionURL: String = appleProductionURL, sandboxURL: String = appleSandboxURL,
        connectTimeout: Duration = .seconds(5), deadline: Duration = .seconds(30), trustedRoots: TrustedRoots? = nil
    ) {
        (self.productionURL, self.sandboxURL) = (productionURL, sandboxURL)
        (self.connectTimeout, self.deadline) = (connectTimeout, deadline)
        self.trustedRoots = trustedRoots
    }

    /// Gives `body` the `HTTPClient` that `AppStoreClient.live` needs, then shuts it down. `change` is for tests.
    /// All its connections live on `loop`. Several loops are not safe: async-http-client 1.37.0 stops the process if a
    /// connection closes between an early answer and the end of its request.
    package func withClient<Result>(
        on loop: any EventLoop = MultiThreadedEventLoopGroup.singleton.any(),
        change: (inout HTTPClient.Configuration) -> Void = { _ in }, _ body: (HTTPClient) async throws -> Result
    ) async throws -> Result {
        var configuration = clientConfiguration
        change(&configuration)
        return try await HTTPClient.withHTTPClient(eventLoopGroup: loop, configuration: configuration, body)
    }

    /// No redirects, because one would carry the shared secret elsewhere. HTTP/1.1, because one dead HTTP/2 connection
    /// would break every call. TLS 1.2 or newer, with every certificate verified.
    private var clientConfiguration: HTTPClient.Configuration {
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
        // The spans of calls have no reader, and the framework would look for a tracer at each call.
        configuration.tracing.tracer = nil
        configuration.http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.submit { try channel.pipeline.syncOperations.addHandler(OneFlush(), position: .first) }
        }
        return configuration
    }

    func url(of environment: StoreEnvironment) -> String {
        switch environment {
        case .production: productionURL
        case .sandbox: sandboxURL
        }
    }
}

/// Flushes once for all that one turn of the event loop writes: the client alone would flush head and body of a call.
private final class OneFlush: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    private var isPending = false

    func flush(context: ChannelHandlerContext) {
        guard !isPending else { return }
        isPending = true
        context.eventLoop.assumeIsolated().execute {
            self.isPending = false
            context.flush()
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

/// Root certificates, for a store whose certificate the system's authorities do not vouch for.
package struct TrustedRoots: Sendable {
    /// The error for a text that is not a list of certificates.
    package struct Unreadable: Error, Sendable, CustomStringConvertible {
        /// The reason in one sentence.
        package let description: String
    }

    let certificates: [NIOSSLCertificate]
    let pem: String

    /// Reads certificates in PEM form, at least one; throws ``Unreadable`` otherwise.
    package init(pem: String) throws(Unreadable) {
        guard let certificates = try? NIOSSLCertificate.fromPEMBytes(Array(pem.utf8)), !certificates.isEmpty else {
            throw Unreadable(description: "it holds no certificate in PEM form (-----BEGIN CERTIFICATE-----).")
        }
        (self.certificates, self.pem) = (certificates, pem)
    }
}

/// Asks the configured addresses of the App Store, without a receipt or a secret, whether they answer at all.
package struct StoreReach: Sendable {
    private let call: HTTPCall
    private let limit: Duration

    /// Creates it on a client of `AppStoreOptions.withClient`. `limit` is for each address.
    package init(client: HTTPClient, limit: Duration = .seconds(10)) {
        call = HTTPCall(client: client, responseBytesMax: 1 << 20)
        self.limit = limit
    }

    /// Returns why an address of verifyReceipt does not answer `{}` with a status, as Apple does; nil if it does.
    package func failure(ofVerifyReceiptAt url: String) async -> String? {
        let result = await call.call(url, sending: ByteBuffer(string: "{}"), until: .now + limit)
        if let failure = result.failure { return sentence(failure, result) }
        // A status other than 200, and text that is no JSON, are failures of their own.
        guard result.body.contains(Array("\"status\"".utf8)) else {
            return "It answers, but not as verifyReceipt does; check the configured address."
        }
        return nil
    }

    /// Returns why an address of the Server API does not refuse a call without a token, as Apple does; nil if it does.
    package func failure(ofServerAPIAt url: String) async -> String? {
        let address = ServerAPIOptions.joined(url, "/inApps/v1/subscriptions/0")
        let result = await call.call(address, .GET, sending: nil, until: .now + limit)
        if result.httpStatus == 401 { return nil }
        guard let failure = result.failure else {
            return "It answers a request without a key, so it is not Apple's; check the configured address."
        }
        return sentence(failure, result)
    }

    private func sentence(_ failure: String, _ result: CallResult) -> String {
        let reason = result.failureDetail.map { "\(failure) (\($0))" } ?? failure
        guard result.httpStatus == nil, !failure.contains("check ") else { return reason }
        return reason + " Check the address, and this machine's network, name servers (DNS) and firewall."
    }
}

/// Reports Apple's announcement that the endpoint will end (headers in the style of RFC 8594), once per value.
final class RetirementNotes: Sendable {
    /// The most different values that are remembered; more would be noise.
    static let valuesMax = 32

    private let note: @Sendable (String) -> Void
    private let seen = Mutex<Set<String>>([])

    init(note: @escaping @Sendable (String) -> Void) { self.note = note }

    func look(at headers: HTTPHeaders, from environment: StoreEnvironment, hiding secrets: Secrets) {
        for name in ["Sunset", "Deprecation"] {
            for value in headers[name] {
                let shown = secrets.hidden(in: value.printable(charactersMax: 200))
                let sentence =
                    "Apple's \(environment.rawValue) endpoint announces its end with the header \(name): \(shown). "
                    + "Plan the move away from verifyReceipt."
                let isNew = seen.withLock { $0.count < Self.valuesMax && $0.insert("\(name): \(shown)").inserted }
                if isNew { note(sentence) }
            }
        }
    }
}
