public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

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
public struct PerennialServer: Sendable, CustomStringConvertible {
    /// The address, such as `https://perennial.example.com`, with the path of a proxy where there is one.
    public let url: URL
    /// The bundle id of the app.
    public let app: String
    /// How requests are sent.
    public let transport: Transport
    /// How long a call may take in seconds. An upload may take ``uploadSeconds``.
    public let requestSeconds: Double

    /// The API key; nil on a device.
    let key: String?

    /// Makes the value; nothing is sent.
    /// - Parameter key: The API key of a service; nil on a device.
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

    /// The address and the app, without the key.
    public var description: String { "\(app) at \(url.absoluteString)" }
}

/// One request to the server.
struct Call {
    /// The path, percent-encoded, from `/v1` on.
    let path: String
    /// What is posted; nil for a GET.
    var body: Data?
    /// Headers beyond those of every request.
    var headers: [String: String] = [:]
    /// How long it may take in seconds; nil is the server's `requestSeconds`.
    var seconds: Double?
    /// Whether the API key goes along. Devices call without one.
    var isKeyed = true

    /// A part of a path. Only what RFC 3986 leaves unreserved stays as it is.
    static func part(_ text: String) throws -> String {
        guard !text.isEmpty, text != ".", text != "..",
            let part = text.addingPercentEncoding(withAllowedCharacters: plain)
        else { throw PerennialError(.invalid, "An id in a path is neither empty nor made of dots: \(text)") }
        return part
    }

    private static let plain = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
}

/// What the server answered.
struct Reply {
    let body: Data
    let response: HTTPURLResponse

    var status: Int { response.statusCode }

    /// Returns the value of a header of the answer.
    func header(_ name: String) -> String? { response.value(forHTTPHeaderField: name) }

    /// Reads the body. Throws `unreadable` when it is not what the server promises.
    func decoded<Answer: Decodable>(as type: Answer.Type) throws -> Answer {
        do {
            return try JSONText.decoder().decode(type, from: body)
        } catch {
            throw PerennialError(.unreadable, "The answer of status \(status) is not Perennial's: \(error)")
        }
    }

    /// The error of an answer that is no success.
    var failure: PerennialError { PerennialError(Problem(self)) }
}

extension PerennialServer {
    /// Returns a path below that of the app.
    func appPath(_ rest: String) throws -> String { "/v1/apps/\(try Call.part(app))/\(rest)" }

    /// Sends a request and returns its answer, of any status. Throws `unreachable` where there is none.
    func reply(to call: Call) async throws -> Reply {
        let request = try request(for: call)
        do {
            let (body, response) = try await transport.send(request)
            guard body.count <= Self.answerBytesMax else {
                throw PerennialError(.unreadable, "The answer is larger than \(Self.answerBytesMax) bytes.")
            }
            return Reply(body: body, response: response)
        } catch let error as PerennialError {
            throw error
        } catch {
            try Task.checkCancellation()
            throw PerennialError(.unreachable, "\(url.absoluteString) does not answer: \(error)")
        }
    }

    /// Sends a request and reads its answer, which has one of these statuses.
    func answer<Answer: Decodable>(
        _ type: Answer.Type, to call: Call, of statuses: Set<Int> = [200]
    ) async throws -> Answer {
        let reply = try await reply(to: call)
        guard statuses.contains(reply.status) else { throw reply.failure }
        return try reply.decoded(as: type)
    }

    /// Returns a call as a request of Foundation, with its headers.
    private func request(for call: Call) throws -> URLRequest {
        let base = url.absoluteString
        guard let address = URL(string: (base.hasSuffix("/") ? String(base.dropLast()) : base) + call.path) else {
            throw PerennialError(.invalid, "\(base) is no base of an address.")
        }
        // An answer has to show what has just been bought, and the system's cache would answer instead.
        var request = URLRequest(
            url: address, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: call.seconds ?? requestSeconds)
        request.httpMethod = call.body == nil ? "GET" : "POST"
        request.httpBody = call.body
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        if call.body != nil { request.setValue("application/json", forHTTPHeaderField: "Content-Type") }
        if call.isKeyed, let key { request.setValue("Bearer \(key)", forHTTPHeaderField: "Authorization") }
        for (name, value) in call.headers { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }
}

/// How requests are sent: one closure, so that a service may use its own HTTP client and a test its own answers.
public struct Transport: Sendable {
    /// Sends a request and returns the whole answer, of any status. It throws when there is none, and keeps to the
    /// request's `timeoutInterval` in seconds.
    public var send: @Sendable (URLRequest) async throws -> (Data, HTTPURLResponse)

    /// Makes a transport.
    public init(send: @escaping @Sendable (URLRequest) async throws -> (Data, HTTPURLResponse)) {
        self.send = send
    }

    /// `URLSession` with a session of its own, which keeps nothing on disk.
    public static let urlSession = Transport.urlSession(URLSession(configuration: .ephemeral))

    /// The same with a session of the caller's.
    public static func urlSession(_ session: URLSession) -> Transport {
        Transport { request in
            let (body, response) = try await session.data(for: request)
            guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            return (body, response)
        }
    }
}

/// JSON as the server writes it: instants are ISO 8601 in UTC with milliseconds.
enum JSONText {
    static func decoder() -> JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let date = date(text) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "\(text) is no instant.")
            }
            return date
        }
        return decoder
    }

    /// Writes bodies and files; equal values give equal bytes.
    static func encode(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(text(date))
        }
        return try encoder.encode(value)
    }

    static func text(_ date: Date) -> String { date.formatted(withMilliseconds) }

    private static let withMilliseconds = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    private static let wholeSeconds = Date.ISO8601FormatStyle(includingFractionalSeconds: false)

    static func date(_ text: String) -> Date? {
        (try? withMilliseconds.parse(text)) ?? (try? wholeSeconds.parse(text))
    }
}
