import AppStore
import ArgumentParser
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Postgres
import Server
import Subscriptions
import Tracking

/// A server with nothing but the framework and the connection to the database: what a lookup costs without our layers.
struct LookupLayers: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "layers", shouldDisplay: false)

    @Option(help: "The port to listen on; those behind it answer without the framework, and with our layers.")
    var port: Int

    /// What each route adds to the one before it, with its path; a customer's name follows.
    static let routes = [
        ("the framework's route, constant JSON", "/constant/"), ("a prepared read by key", "/read/"),
        ("the statement of a lookup, its rows read", "/found/"),
    ]

    private static let key = Statement(
        name: "key", sql: "SELECT c.customer_id FROM ledger.customer c WHERE c.app_id = 1 AND c.name = $1::text")

    func run() async throws {
        let bare = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.backlog, value: 256)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(BareAnswers())
                }
            }
            .bind(host: "127.0.0.1", port: port + 1).get()
        let database = Database(DatabaseConfiguration(connectionString: try World.value("DATABASE_URL"))) { print($0) }
        let ledger = SubscriptionLedger(database: database)
        let customers = ledger.customers
        let router = Router()
        router.get("/constant/{id}") { _, _ in Self.constant }
        router.get("/read/{id}") { _, context in
            _ = try await database.query(Self.key, [.text(try context.parameters.require("id"))])
            return Self.constant
        }
        router.get("/found/{id}") { _, context in
            let customer = AppCustomerID(try context.parameters.require("id"))
            _ = try await customers.entitlements(of: CustomerName(customer, of: World.app))
            return Self.constant
        }
        let responder = router.buildResponder()
        var logger = Logger(label: "layers")
        logger.logLevel = .error
        let tracker = Tracker(
            ledger: ledger, appStore: AppStoreClient { _ in fatalError("Nothing here asks Apple.") },
            options: TrackerOptions(), logger: logger)
        async let ladder: Void = LookupLadder.serve(tracker, port: port + 2, logger: logger)
        try await Application(
            responder: responder, server: HTTPServerBuilder { _ in Connections(responder: responder) },
            configuration: .init(address: .hostname("127.0.0.1", port: port)),
            logger: logger
        ).run()
        try await ladder
        try await bare.close()
    }

    fileprivate static let body = ByteBuffer(
        string: #"{"app":"com.example.tracker","at":"2026-11-26T10:00:00.000Z","customer":"f0000001","stale":false}"#)

    private static var constant: Response {
        Response(status: .ok, headers: [.contentType: "application/json"], body: .init(byteBuffer: body))
    }
}

/// The same constant JSON without the framework: neither tasks nor streams of parts, one handler on the event loop.
private final class BareAnswers: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .end = unwrapInboundIn(data) else { return }
        let body = LookupLayers.body
        let headers: HTTPHeaders = ["Content-Type": "application/json", "Content-Length": "\(body.readableBytes)"]
        let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}
