import AsyncHTTPClient
import Foundation
import NIOCore
import NIOFoundationEssentialsCompat
import NIOHTTP1

/// Calls over HTTP with JSON.
enum HTTPCalls {
    static let bytesMax = 8 << 20
    /// A server that was killed comes back on another port, so a refused connection is tried once.
    private static let client = HTTPClient(
        eventLoopGroupProvider: .singleton,
        configuration: {
            var configuration = HTTPClient.Configuration()
            configuration.connectionPool.retryConnectionEstablishment = false
            return configuration
        }())

    /// An answer that is not one of success.
    struct Refused: Error, CustomStringConvertible {
        let url: String
        let status: UInt
        let body: String

        var description: String { "\(url): \(status) \(body)" }
        /// Whether the same call may succeed later.
        var isTemporary: Bool { status == 429 || status >= 500 }
    }

    /// Sends a request and reads its JSON. Throws what the network throws, and `Refused`.
    static func send<Answer: Decodable>(
        _ url: String, _ body: [String: any Sendable]? = nil, headers: [String: String] = [:], reading: Answer.Type
    ) async throws -> Answer {
        try JSONDecoder().decode(Answer.self, from: try await send(url, body, headers: headers))
    }

    /// The same for an answer that is not read.
    @discardableResult
    static func send(
        _ url: String, _ body: [String: any Sendable]? = nil, headers: [String: String] = [:]
    ) async throws -> Data {
        var request = HTTPClientRequest(url: url)
        request.method = body == nil ? .GET : .POST
        if let body { request.body = .bytes(ByteBuffer(data: try JSONSerialization.data(withJSONObject: body))) }
        request.headers.add(name: "Content-Type", value: "application/json")
        for (name, value) in headers { request.headers.replaceOrAdd(name: name, value: value) }
        let answer = try await client.execute(request, timeout: .seconds(40))
        let data = Data(buffer: try await answer.body.collect(upTo: bytesMax))
        guard (200..<300).contains(answer.status.code) else {
            throw Refused(url: url, status: answer.status.code, body: String(decoding: data, as: UTF8.self))
        }
        return data
    }
}
