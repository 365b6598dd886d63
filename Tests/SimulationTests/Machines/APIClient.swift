import AsyncHTTPClient
import Foundation
import NIOCore
import NIOFoundationEssentialsCompat
import NIOHTTP1

/// A client of a running server, with a key.
struct APIClient {
    static let bytesMax = 8 << 20

    let address: String
    let secret: String

    /// The status and the JSON of an answer.
    func get(_ path: String) async throws -> (status: UInt, json: JSONObject) {
        try await send(HTTPClientRequest(url: address + path))
    }

    func post(_ path: String, _ body: [String: any Sendable]) async throws -> (status: UInt, json: JSONObject) {
        var request = HTTPClientRequest(url: address + path)
        request.method = .POST
        request.body = .bytes(ByteBuffer(data: try JSONSerialization.data(withJSONObject: body)))
        request.headers.add(name: "Content-Type", value: "application/json")
        return try await send(request)
    }

    /// The status of an answer, after how many seconds the caller shall come back, and how long it took.
    func time(_ path: String) async throws -> (status: UInt, retryAfter: Int?, elapsed: Duration) {
        let begin = ContinuousClock.now
        let answer = try await execute(HTTPClientRequest(url: address + path))
        let retryAfter = answer.headers.first(name: "Retry-After").flatMap { Int($0) }
        return (answer.status.code, retryAfter, ContinuousClock.now - begin)
    }

    private func execute(_ request: HTTPClientRequest) async throws -> HTTPClientResponse {
        var request = request
        request.headers.add(name: "Authorization", value: "Bearer \(secret)")
        return try await HTTPClient.shared.execute(request, timeout: .seconds(30))
    }

    private func send(_ request: HTTPClientRequest) async throws -> (status: UInt, json: JSONObject) {
        let answer = try await execute(request)
        let body = try await answer.body.collect(upTo: Self.bytesMax)
        return (answer.status.code, try JSONObject(Data(buffer: body)))
    }
}

/// An object of JSON, compared by its text with sorted keys.
struct JSONObject: Hashable, CustomStringConvertible {
    let description: String

    init(_ data: Data) throws {
        let object = try JSONSerialization.jsonObject(with: data)
        let sorted = try JSONSerialization.data(
            withJSONObject: object, options: [.sortedKeys, .withoutEscapingSlashes])
        description = String(decoding: sorted, as: UTF8.self)
    }
}
