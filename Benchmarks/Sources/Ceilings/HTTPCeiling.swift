import AppStore
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Postgres

/// The HTTP client alone: the same questions over the same number of connections, the answers thrown away.
struct HTTPCeiling {
    let world: World
    /// Questions at a time.
    var callers = 128

    /// Asks `count` questions; returns how many were answered.
    func ask(_ count: Int) async throws -> Int {
        let bodies = try await questions()
        var options = AppStoreOptions()
        options.connectionsPerHostMax = callers
        return try await options.withClient { client in
            try await answers(to: bodies, count, by: client)
        }
    }

    private func answers(to bodies: [ByteBuffer], _ count: Int, by client: HTTPClient) async throws -> Int {
        let url = "http://127.0.0.1:\(World.simulatorPort)/verifyReceipt"
        return try await withThrowingTaskGroup(of: Int.self) { group in
            for caller in 0..<callers {
                group.addTask {
                    var answered = 0
                    for number in stride(from: caller, to: count, by: callers) {
                        let request = try HTTPClient.Request(
                            url: url, method: .POST, headers: ["content-type": "application/json"],
                            body: .byteBuffer(bodies[number % bodies.count]))
                        let response = try await client.execute(request: request).get()
                        answered += response.body?.readableBytes ?? 0 > 100 ? 1 : 0
                    }
                    return answered
                }
            }
            return try await group.reduce(0, +)
        }
    }

    /// The bodies that the product would send.
    private func questions() async throws -> [ByteBuffer] {
        let rows = try await world.database.query(
            Statement(
                name: "questions",
                sql: "SELECT COALESCE(latest_receipt, data) AS data FROM ledger.receipt LIMIT 20000"))
        return try rows.map { row in
            let receipt = Data(try row.bytea("data")).base64EncodedString()
            return ByteBuffer(
                string:
                    #"{"receipt-data":"\#(receipt)","password":"\#(World.secret)","exclude-old-transactions":false}"#)
        }
    }
}
