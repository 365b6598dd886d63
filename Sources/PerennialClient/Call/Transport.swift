public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

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
