import Foundation
import PerennialClient
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A transport that answers from a list; the last answer stays. It remembers what was asked.
final class ScriptedServer: Sendable {
    /// One answer; nil is an unreachable server.
    struct Answer {
        var status = 200
        var headers: [String: String] = [:]
        var body = ""

        /// A problem of the server.
        static func problem(_ status: Int, _ kind: String, retryAfter: String? = nil, more: String = "") -> Answer {
            Answer(
                status: status, headers: retryAfter.map { ["Retry-After": $0] } ?? [:],
                body: #"{"type":"urn:perennial:problem:\#(kind)","title":"t","status":\#(status),"# + more
                    + #""detail":"It says why.","request_id":"r1"}"#)
        }

        /// An answer to an upload.
        static func upload(
            _ result: String = "succeeded", status: Int = 200, advice: String? = nil, after seconds: Int? = nil,
            finish: [String] = []
        ) -> Answer {
            Answer(
                status: status,
                body: """
                    {"result":"\(result)","advice":\(advice.map { "\"\($0)\"" } ?? "null"),
                     "retry_after_s":\(seconds.map(String.init) ?? "null"),"may_finish":\(finish),
                     "may_finish_restored":["o"],"order":null,"more":{"of a newer server":1}}
                    """)
        }
    }

    private struct State {
        var answers: [Answer?] = []
        var requests: [URLRequest] = []
    }

    private let state = Mutex(State())

    /// Answers like this from now on.
    func say(_ answers: Answer?...) { state.withLock { $0.answers = answers } }

    /// What was asked so far.
    var requests: [URLRequest] { state.withLock { $0.requests } }

    /// The server as a service with a key sees it, or a device without one.
    func server(key: String? = "secret") -> PerennialServer {
        let transport = Transport { request in
            let answer = self.state.withLock { state in
                state.requests.append(request)
                return state.answers.count > 1 ? state.answers.removeFirst() : state.answers.first ?? nil
            }
            guard let answer, let url = request.url,
                let response = HTTPURLResponse(
                    url: url, statusCode: answer.status, httpVersion: nil, headerFields: answer.headers)
            else { throw URLError(.cannotConnectToHost) }
            return (Data(answer.body.utf8), response)
        }
        return PerennialServer(
            at: URL(string: "https://perennial.example.com/api/") ?? URL(filePath: "/"), app: "com.example.app",
            key: key, transport: transport)
    }
}

/// A folder of its own, which is removed afterwards.
func withFolder<Result>(_ body: (URL) async throws -> Result) async throws -> Result {
    let folder = FileManager.default.temporaryDirectory.appending(path: "client-\(UUID())")
    defer {
        // A test may have removed it.
        try? FileManager.default.removeItem(at: folder)
    }
    return try await body(folder)
}
