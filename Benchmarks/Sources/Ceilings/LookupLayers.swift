import ArgumentParser
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import Postgres
import Server
import Subscriptions
import Tracking

/// A server with nothing but the framework and the connection to the database: what a lookup costs without our layers.
struct LookupLayers: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "layers", shouldDisplay: false)

    @Option(help: "The port to listen on.")
    var port: Int

    /// What each route adds to the one before it, with its path; a customer's name follows.
    static let routes = [
        ("the framework's route, constant JSON", "/constant/"), ("a prepared read by key", "/read/"),
        ("the statement of a lookup, its rows read", "/found/"),
    ]

    private static let key = Statement(
        name: "key", sql: "SELECT c.customer_id FROM ledger.customer c WHERE c.app_id = 1 AND c.name = $1::text")

    func run() async throws {
        let database = Database(DatabaseConfiguration(connectionString: try World.value("DATABASE_URL"))) { print($0) }
        let customers = SubscriptionLedger(database: database).customers
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
        let server = HTTPServerBuilder { OnEventLoop(connection: HTTP1Channel(responder: $0)) }
        var logger = Logger(label: "layers")
        logger.logLevel = .error
        try await Application(
            router: router, server: server, configuration: .init(address: .hostname("127.0.0.1", port: port)),
            logger: logger
        ).run()
    }

    private static var constant: Response {
        let text = #"{"app":"com.example.tracker","at":"2026-11-26T10:00:00.000Z","customer":"f0000001","stale":false}"#
        return Response(
            status: .ok, headers: [.contentType: "application/json"], body: .init(byteBuffer: ByteBuffer(string: text)))
    }
}
