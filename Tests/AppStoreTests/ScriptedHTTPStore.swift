import AppStore
import AsyncHTTPClient
import Foundation
import Hummingbird
import Logging
import NIOCore
import Synchronization

/// One question that reached the scripted store.
struct Asked: Sendable {
    let path: String
    let body: String
    /// The path with its query.
    let target: String
    let authorization: String?
    let contentType: String?
    let hasCookie: Bool

    var password: String? { object["password"] as? String }
    var receipt: String? { object["receipt-data"] as? String }
    var excludesOld: Bool? { object["exclude-old-transactions"] as? Bool }
    var isSandbox: Bool { path == "/sandbox" }

    private var object: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]) ?? [:]
    }
}

/// An HTTP server on this machine that answers by a script: statuses, headers, slow bodies, transfers that break off.
///
/// It is not in `TestSupport`, because only the tests of the HTTP client need HTTP. All others replace the client by
/// `ScriptedStore`, or ask the simulator, whose customers buy and renew.
final class ScriptedHTTPStore: Sendable {
    private let received = Mutex<[Asked]>([])
    private let noted = Mutex<[String]>([])

    var asked: [Asked] { received.withLock { $0 } }
    var notes: [String] { noted.withLock { $0 } }

    /// Serves `script` while `work` runs; `work` gets the options that point here.
    func serving(
        _ script: @escaping @Sendable (Asked) async throws -> Response,
        _ work: @escaping @Sendable (AppStoreOptions) async throws -> Void
    ) async throws {
        let (ports, port) = AsyncStream<Int>.makeStream()
        var logger = Logger(label: "scripted store")
        logger.logLevel = .critical
        let responder = CallbackResponder<BasicRequestContext> { request, _ in
            let body = try await request.body.collect(upTo: 16 * 1024 * 1024)
            let question = Asked(
                path: request.uri.path, body: String(buffer: body), target: request.uri.string,
                authorization: request.headers[.authorization], contentType: request.headers[.contentType],
                hasCookie: request.headers[.cookie] != nil)
            self.received.withLock { $0.append(question) }
            return try await script(question)
        }
        let application = Application(
            responder: responder, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { port.yield($0.localAddress?.port ?? 0) }, logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await application.run() }
            for await port in ports {
                let base = "http://127.0.0.1:\(port)"
                try await work(AppStoreOptions(productionURL: base + "/production", sandboxURL: base + "/sandbox"))
                break
            }
        }
    }

    /// Asks once through the live client; `configure` may change the client's configuration.
    func verify(
        _ request: AppStoreRequest, _ options: AppStoreOptions,
        configure: (inout HTTPClient.Configuration) -> Void = { _ in }
    ) async throws -> AppStoreAnswer {
        try await options.withClient(change: configure) { client in
            let store = AppStoreClient.live(options, client: client) { note in self.noted.withLock { $0.append(note) } }
            return await store.verify(request)
        }
    }
}

extension Response {
    /// A plain answer.
    static func text(_ body: String, _ status: HTTPResponse.Status = .ok, _ headers: HTTPFields = [:]) -> Response {
        Response(status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(string: body)))
    }
}
