import AppStore
import AppStoreSimulator
import AsyncHTTPClient
import Foundation
import Logging
import NIOCore
import Postgres
import Subscriptions
import TestSupport
import Testing
import Tracking

/// A tracker whose App Store speaks HTTPS, and at times shows a certificate that must not be believed.
@Suite("A bad certificate of the store is no answer") struct HTTPSTests {
    @Test(.timeLimit(.minutes(1)))
    func `a store that cannot be believed costs no receipt and no access`() async throws {
        try await withMigratedDatabase { database, _ in
            let identity = try StoreIdentity()
            var options = SimulatorOptions(seed: 12)
            (options.port, options.customers, options.sandboxCustomers, options.monthSeconds) = (0, 0, 0, 86_400)
            let simulator = Simulator(options, identity: identity)
            let (ports, port) = AsyncStream.makeStream(of: Int.self)
            let server = Task { try await simulator.run { port.yield($0) } }
            defer { server.cancel() }
            let listening = try #require(await ports.first { _ in true })
            let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: PretendWorld.masterKey))
            try await ledger.apps.add(
                BundleID(options.bundleID), secret: options.sharedSecret, callsPerSecond: 0)
            let customer = simulator.createCustomer(CustomerScript())
            let store = HTTPSStore(port: listening, identity: identity, ledger: ledger)
            let receipt = try await store.receipt(of: customer)

            let first = try await store.check(receipt)
            #expect(first.outcome == .verified, "\(first)")
            let before = try await Remembered.of(database)
            #expect(before.entitled && before.isScheduled && before.events > 0)

            let reasons: [(StoreCertificate, String)] = [
                (.wrongName, "for another name than"), (.expired, "expired on "),
                (.unknownAuthority, "an authority that is not trusted here"),
            ]
            for (certificate, words) in reasons {
                identity.show(certificate)
                let settled = try await store.check(receipt)
                #expect(settled.outcome == .indeterminate && settled.reason?.contains(words) == true, "\(settled)")
                #expect(try await Remembered.of(database) == before, "\(certificate)")
            }
            identity.show(.good)
            #expect(try await store.check(receipt).outcome == .verified)
            #expect(try await Remembered.of(database) == before)
        }
    }
}

/// Asks a store over HTTPS.
private struct HTTPSStore {
    let port: Int
    let identity: StoreIdentity
    let ledger: SubscriptionLedger

    func receipt(of customer: SimulatedCustomer) async throws -> ReceiptID {
        try await with { tracker in
            let upload = Submission(
                bundleID: BundleID(customer.app), customer: customer.customer, receipt: customer.receipt,
                imported: false)
            return try #require(try await tracker.store([upload]).first).get().receiptID
        }
    }

    /// On a connection of its own: one that is open already shows no certificate again.
    func check(_ receipt: ReceiptID) async throws -> Settled {
        try await with { try await $0.check(receipt) }
    }

    private func with<Result>(_ body: (Tracker) async throws -> Result) async throws -> Result {
        let options = AppStoreOptions(
            productionURL: "https://localhost:\(port)/verifyReceipt",
            sandboxURL: "https://localhost:\(port)/sandbox/verifyReceipt", connectTimeout: .seconds(5),
            trustedRoots: try TrustedRoots(pem: identity.rootPEM))
        return try await options.withClient { client in
            var logger = Logger(label: "https")
            logger.logLevel = .error
            return try await body(
                Tracker(
                    ledger: ledger, appStore: .live(options, client: client) { print($0) }, options: TrackerOptions(),
                    logger: logger))
        }
    }
}

/// What must not change while the store cannot be believed.
private struct Remembered: Equatable {
    let entitled: Bool
    let isScheduled: Bool
    let events: Int64
    let version: Int64

    static func of(_ database: Database) async throws -> Remembered {
        let sql = """
            SELECT p.entitled, s.version::int8 AS version,
                   EXISTS (SELECT FROM ledger.poll_schedule q
                           WHERE q.receipt_id = s.polled_by AND q.due_at < now() + interval '1 day') AS scheduled,
                   (SELECT count(*) FROM ledger.event) AS events
            FROM ledger.subscription s JOIN ledger.subscription_span p USING (subscription_id)
            WHERE upper_inf(p.known) AND p.valid @> now()
            """
        let row = try #require(try await database.query(Statement(name: "remembered", sql: sql)).first)
        return Remembered(
            entitled: try row.bool("entitled"), isScheduled: try row.bool("scheduled"),
            events: try row.int8("events"), version: try row.int8("version"))
    }
}
