import AppStore
import AppStoreSimulator
import Foundation
import Postgres
import Subscriptions
import Testing
import Tracking

/// A world in which a person supports the customers of an app whose server key Apple knows.
struct SupportWorld {
    let world: PretendWorld
    let app: App
    /// A subscriber whom the ledger knows, by the id of the first transaction.
    let id: String

    /// The tracker of the person.
    var tracker: Tracker { world.tracker.acting(as: .user("kim")) }

    static func with(_ body: (SupportWorld) async throws -> Void) async throws {
        var options = SimulatorOptions(seed: 27)
        (options.customers, options.sandboxCustomers, options.monthSeconds) = (0, 0, 3_600)
        try await PretendWorld.with(options) { world in
            let customer = world.simulator.createCustomer(CustomerScript())
            let submitted = try await world.tracker.submit(
                Submission(bundleID: world.bundleID, customer: customer.customer, receipt: customer.receipt))
            guard case .settled = submitted else { throw NotSettled() }
            let app = try await world.tracker.ledger.apps.app(world.bundleID)
            try await body(SupportWorld(world: world, app: app, id: customer.originalTransactionID))
        }
    }

    /// Apple's answer was not settled.
    struct NotSettled: Error {}

    /// Has a newcomer buy coins; returns the transaction's id.
    func coins() throws -> String {
        let shopper = world.simulator.createCustomer(ScriptKind.newcomer.script)
        var buy = CustomerAction(.buy)
        buy.item = .coins
        let made = try #require(try world.simulator.perform(buy, on: shopper.customer))
        return try #require(made.transaction).transactionID
    }

    /// A call of the simulator's control.
    func control(_ path: String, _ body: [String: any Sendable]) async throws {
        try await HTTPCalls.send("http://127.0.0.1:\(world.port)/simulator/\(path)", body)
    }

    func make(_ change: SupportChange, again: Bool = false) async throws -> MadeSupportCall {
        try await tracker.support(change, about: app, in: .production, again: again)
    }

    func ask(_ question: SupportQuestion) async throws -> SupportContents {
        try await tracker.support(question, about: app, in: .production)
    }

    /// Expects that Apple refuses, for a reason with these words.
    func expectRefusal(
        _ words: String, isRefusal: Bool = true, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Void
    ) async {
        let failure = await #expect(throws: SupportFailure.self, sourceLocation: sourceLocation) { try await body() }
        #expect(failure?.sentence.contains(words) == true, "\(failure?.sentence ?? "")", sourceLocation: sourceLocation)
        #expect(failure?.isRefusal == isRefusal, sourceLocation: sourceLocation)
    }

    /// The rows of a query, the columns of each joined by spaces.
    func rows(_ columns: String, _ rest: String) async throws -> [String] {
        let database = Database(DatabaseConfiguration(connectionString: world.connectionString)) { print($0) }
        let sql = "SELECT concat_ws(' ', \(columns)) AS line FROM \(rest)"
        let lines = try await database.query(Statement(name: "support", sql: sql)).map { try $0.text("line") }
        await database.close()
        return lines
    }
}

extension PretendWorld {
    /// Runs `body` with the settings by which a process asks the pretend Server API and believes its texts.
    func serverSettings<Result>(_ body: ([String: String]) async throws -> Result) async throws -> Result {
        let root = FileManager.default.temporaryDirectory.appending(path: "root-\(UUID())")
        try simulator.signingAuthority().rootPEM.write(to: root, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: root) }
        let base = "http://127.0.0.1:\(port)"
        return try await body([
            "PERENNIAL_APPSTORE_SERVER_URL": base, "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL": "\(base)/sandbox",
            "PERENNIAL_APPSTORE_ROOT_FILE": root.path,
        ])
    }
}
