import Hummingbird
import HummingbirdCore
import HummingbirdTesting
import NIOPosix
import Testing

@testable import Server

@Suite("Long answers leave the event loop")
struct OnEventLoopTests {
    private let whichThread: @Sendable (Request, CallerContext) async throws -> Response = { _, _ in
        // Also after whatever made the answer wait.
        try await Task.sleep(for: .milliseconds(1))
        let isOnEventLoop = MultiThreadedEventLoopGroup.currentEventLoop != nil
        return Response(status: .ok, body: .init(byteBuffer: .init(string: "\(isOnEventLoop)")))
    }

    @Test("A brief answer stays on the event loop; a long one would delay other connections there")
    func briefAnswers() async throws {
        let router = Router(context: CallerContext.self)
        router.get("/brief", use: whichThread)
        router.group().add(middleware: OffEventLoop()).get("/long", use: whichThread)
        let responder = router.buildResponder()
        let application = Application(
            responder: responder, server: HTTPServerBuilder { _ in Connections(responder: responder) },
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)))
        try await application.test(.live) { client in
            let brief = try await client.execute(uri: "/brief", method: .get) { String(buffer: $0.body) }
            let long = try await client.execute(uri: "/long", method: .get) { String(buffer: $0.body) }
            #expect(brief == "true")
            #expect(long == "false")
        }
    }
}
