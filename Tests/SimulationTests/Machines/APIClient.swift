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

    private func send(_ request: HTTPClientRequest) async throws -> (status: UInt, json: JSONObject) {
        var request = request
        request.headers.add(name: "Authorization", value: "Bearer \(secret)")
        let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
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
