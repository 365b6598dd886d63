import NIOCore
import Synchronization

/// Sends given requests once each, on many connections, as fast as they are answered.
struct FiniteLoad: Sendable {
    let port: Int
    let connections: Int

    /// Sends the requests and waits for their answers; throws where one is not HTTP 200.
    func send(_ requests: [ByteBuffer]) async throws {
        let load = LoadGenerator(port: port, connections: connections, requestsMax: requests.count)
        _ = try await load.run(seconds: 600) { requests[$0] }
    }
}
