import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request to the server.
struct Call {
    /// The method.
    var method = "GET"
    /// The path, percent-encoded, from `/v1` on.
    let path: String
    /// The body; nil sends none.
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
    let status: Int
    let body: Data
    private let response: HTTPURLResponse

    init(_ body: Data, _ response: HTTPURLResponse) {
        (status, self.body, self.response) = (response.statusCode, body, response)
    }

    /// A header of the answer.
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
    /// The path of the app with a rest.
    func appPath(_ rest: String) throws -> String { "/v1/apps/\(try Call.part(app))/\(rest)" }

    /// Sends a request and returns its answer, of any status. Throws `unreachable` where there is none.
    func reply(to call: Call) async throws -> Reply {
        let request = try request(for: call)
        do {
            let (body, response) = try await transport.send(request)
            guard body.count <= Self.answerBytesMax else {
                throw PerennialError(.unreadable, "The answer is larger than \(Self.answerBytesMax) bytes.")
            }
            return Reply(body, response)
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

    private func request(for call: Call) throws -> URLRequest {
        let base = url.absoluteString
        guard let address = URL(string: (base.hasSuffix("/") ? String(base.dropLast()) : base) + call.path) else {
            throw PerennialError(.invalid, "\(base) is no base of an address.")
        }
        // An answer has to show what has just been bought, and the system's cache would answer instead.
        var request = URLRequest(
            url: address, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: call.seconds ?? requestSeconds)
        request.httpMethod = call.method
        request.httpBody = call.body
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        if call.body != nil { request.setValue("application/json", forHTTPHeaderField: "Content-Type") }
        if call.isKeyed, let key { request.setValue("Bearer \(key)", forHTTPHeaderField: "Authorization") }
        for (name, value) in call.headers { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }
}
