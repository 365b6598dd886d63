import Foundation
import Hummingbird

extension ServerLimits {
    /// Returns the whole body of a request. Throws a problem when it exceeds the limits of size or time.
    func body(of request: Request) async throws -> ByteBuffer {
        if let length = request.headers[.contentLength].flatMap(Int.init), length > bodyBytesMax { throw tooLarge }
        return try await withThrowingTaskGroup(of: ByteBuffer?.self) { group in
            group.addTask {
                var request = request
                return try await collectBody(of: &request)
            }
            group.addTask {
                try await Task.sleep(for: .seconds(bodySecondsMax))
                return nil
            }
            defer { group.cancelAll() }
            do {
                if let body = try await group.next() ?? nil { return body }
            } catch let error as any HTTPResponseError where error.status == .contentTooLarge {
                throw tooLarge
            }
            throw Problem(
                .timedOut, "The body did not arrive within \(bodySecondsMax) seconds.", headers: [.connection: "close"])
        }
    }

    private func collectBody(of request: inout Request) async throws -> ByteBuffer {
        do {
            return try await request.collectBody(upTo: bodyBytesMax)
        } catch let error where !(error is any HTTPResponseError || error is CancellationError) {
            throw Problem(
                .invalid, "The body does not arrive as HTTP has it: \(error).", headers: [.connection: "close"])
        }
    }

    /// Returns the body decoded from JSON. Throws a problem for a content type other than JSON, unless it is absent,
    /// and for an unknown field. Handlers call it before their own queries, so that a useless body costs none of them.
    func json<Body: KnownFields>(_ type: Body.Type, of request: Request) async throws -> Body {
        if let type = request.headers[.contentType], !Self.isJSON(type) {
            throw Problem(
                .unsupportedMedia, "Send the body as application/json.", headers: [.accept: "application/json"])
        }
        let data = Data(buffer: try await body(of: request))
        return try JSONDecoder().decode(OnlyKnownFields<Body>.self, from: data).body
    }

    /// Returns whether the type is `application/json` or is built on JSON (RFC 9110, section 8.3.1; RFC 6838, section
    /// 4.2.8).
    private static func isJSON(_ type: String) -> Bool {
        let essence = type.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        return essence == "application/json" || (essence.hasPrefix("application/") && essence.hasSuffix("+json"))
    }

    private var tooLarge: Problem {
        Problem(.tooLarge, "The body is larger than \(bodyBytesMax) bytes.")
    }
}
