import AppStoreSimulator
import Crypto
import Foundation
import TestSupport
import Testing

/// An app that never had a receipt or a shared secret, with every machine a process of its own.
@Suite("An app that only knows StoreKit 2 lives on the Server API, from the upload over HTTP to the lookup")
struct StoreKit2ProcessTests {
    private static let app = "com.example.tracker"
    private static let (keyID, issuer) = ("S1", "57246542-96fe-1a63-e053-0824d011072a")
    private static let monthSeconds = 20

    @Test(
        "Signed transactions are uploaded, the worker and the server are killed, and the lookups agree with the store",
        .timeLimit(.minutes(3)))
    func lives() async throws {
        try await withMigratedDatabase { _, address in
            let machines = try await Machines(on: address)
            defer { machines.kill() }
            let known = try await machines.upload(from: "signed-transactions")
            #expect(known.count > 15)
            try await machines.live(seconds: Self.monthSeconds / 2)
            try await machines.replaceAll()
            try await machines.live(seconds: Self.monthSeconds)
            let renewals = try await machines.expectAgreement(of: known)
            print("periods that were renewed: \(renewals)")
            #expect(renewals > 10, "the population hardly lived; this test would prove little")
            for command in [["verify"], ["rebuild", "--verify"]] {
                let ended = try await machines.run(command)
                #expect(ended.status == 0, "\(ended)")
            }
        }
    }

    /// The App Store, the server and the worker.
    private final class Machines {
        private let simulator: PerennialProcess
        private let store: String
        private let environment: [String: String]
        private let root: URL
        private let key: String
        private var server: PerennialProcess
        private var worker: PerennialProcess
        private var api: String

        init(on database: String) async throws {
            root = FileManager.default.temporaryDirectory.appending(path: "root-\(UUID()).pem")
            simulator = try PerennialProcess(
                [
                    "simulator", "--port", "0", "--seed", "20261129", "--customers", "24", "--sandbox-customers", "0",
                    "--arrivals-per-month", "0", "--month-seconds", "\(monthSeconds)", "--signing-root-file", root.path,
                ], environment: [:])
            store = try #require(try await simulator.address(), "\(simulator.said)")
            environment = [
                "DATABASE_URL": database, "PERENNIAL_MASTER_KEY": Data(PretendWorld.masterKey).base64EncodedString(),
                "PERENNIAL_APPSTORE_URL": "\(store)/verifyReceipt",
                "PERENNIAL_APPSTORE_SANDBOX_URL": "\(store)/sandbox/verifyReceipt",
                "PERENNIAL_APPSTORE_SERVER_URL": store,
                "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL": "\(store)/sandbox",
                "PERENNIAL_APPSTORE_ROOT_FILE": root.path,
                "PERENNIAL_POLL_SPEEDUP": "\(30 * 86_400 / monthSeconds)", "PERENNIAL_LEASE_SECONDS": "4",
                "PERENNIAL_HTTP_PORT": "0",
            ]
            key = try await Self.register(environment, store)
            server = try PerennialProcess(["serve"], environment: environment)
            worker = try PerennialProcess(["worker"], environment: environment)
            api = try #require(try await server.address(), "\(server.said)")
        }

        /// Registers the app with a key for the Server API and no secret; returns a key for the HTTP API.
        private static func register(_ environment: [String: String], _ store: String) async throws -> String {
            let pem = PretendWorld.serverKey
            try await HTTPCalls.send(
                "\(store)/simulator/server-keys",
                ["key_id": keyID, "issuer_id": issuer, "public_key": pem.publicKey.pemRepresentation])
            let file = FileManager.default.temporaryDirectory.appending(path: "key-\(UUID())")
            try Data(pem.pemRepresentation.utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            var said = ""
            for command in [
                ["app", "add", "--bundle-id", app, "--rate", "0"],
                [
                    "app", "server-key", "--app", app, "--key-id", keyID, "--issuer-id", issuer, "--key-file",
                    file.path,
                ],
                ["app", "set", app, "--verifier", "server_api"], ["key", "create", "--scope", "write", "--rate", "0"],
            ] {
                let ended = try await run(command, environment)
                #expect(ended.status == 0, "\(ended)")
                said = ended.said
            }
            let secret = said.split(separator: "\n").first { !$0.contains(" ") }
            return String(try #require(secret, "\(said)"))
        }

        private static func run(_ arguments: [String], _ environment: [String: String]) async throws -> (
            status: Int32, said: String
        ) {
            let process = try PerennialProcess(arguments, environment: environment)
            let status = await process.end()
            let said = process.said
            try process.forget()
            return (status, said)
        }

        func run(_ arguments: [String]) async throws -> (status: Int32, said: String) {
            try await Self.run(arguments, environment)
        }

        /// Lets everything go on; devices send what is bought meanwhile.
        func live(seconds: Int) async throws {
            let end = ContinuousClock.now + .seconds(seconds)
            var since = Date.now
            while ContinuousClock.now < end {
                let now = Date.now
                _ = try await upload(from: "signed-uploads?since=\(since.ISO8601Format())")
                since = now
                try await Task.sleep(for: .milliseconds(300))
            }
        }

        /// Sends signed transactions over HTTP, as devices do; returns the customers.
        func upload(from route: String) async throws -> Set<String> {
            struct Answer: Decodable { let result, vouching, reason, detail, title: String? }
            let devices = try await HTTPCalls.send(
                "\(store)/simulator/\(route)", reading: [SimulatedTransaction].self)
            for device in devices {
                let answer = try await HTTPCalls.send(
                    "\(api)/v1/apps/\(app)/receipts",
                    ["customer": device.customer, "signed_transaction": device.signedTransaction],
                    headers: ["Authorization": "Bearer \(key)"], reading: Answer.self)
                #expect(answer.vouching == "signed" && answer.result == "succeeded", "\(answer)")
            }
            return Set(devices.map(\.customer))
        }

        /// Kills server and worker, and starts them again.
        func replaceAll() async throws {
            for process in [server, worker] {
                process.kill()
                _ = await process.end()
                try process.forget()
            }
            server = try PerennialProcess(["serve"], environment: environment)
            worker = try PerennialProcess(["worker"], environment: environment)
            api = try #require(try await server.address(), "\(server.said)")
        }

        /// Expects that the lookups of all customers agree with the store, each at some moment within half a minute, for both
        /// live on. Returns how many periods followed others.
        func expectAgreement(of known: Set<String>) async throws -> Int {
            var left = known
            var renewals = 0
            let end = ContinuousClock.now + .seconds(30)
            while !left.isEmpty, ContinuousClock.now < end {
                for customer in left.sorted() {
                    guard let truth = try await truth(of: customer) else {
                        left.remove(customer)
                        continue
                    }
                    let found = try await lines(of: customer)
                    // The store lives on between the two questions.
                    guard try await self.truth(of: customer) == truth else { continue }
                    guard found == truth else { continue }
                    left.remove(customer)
                    renewals += truth.reduce(0) { $0 + $1.periods - 1 }
                }
            }
            for customer in left {
                Issue.record(
                    "\(customer): the store says \(try await truth(of: customer) ?? []), the lookup \(try await lines(of: customer))"
                )
            }
            return renewals
        }

        /// How a subscription stands.
        private struct Line: Hashable {
            let id: String
            let periods: Int
            let entitled: Bool
        }

        /// What the store says; nil where the account is gone.
        private func truth(of customer: String) async throws -> Set<Line>? {
            let truth = try await HTTPCalls.send("\(store)/simulator/truth/\(customer)", reading: CustomerTruth.self)
            guard !truth.accountDeleted else { return nil }
            return Set(
                truth.subscriptions.map {
                    Line(id: $0.originalTransactionID, periods: $0.periods.count, entitled: $0.access != .none)
                })
        }

        /// What the lookup says.
        private func lines(of customer: String) async throws -> Set<Line> {
            struct Record: Decodable {
                struct Subscription: Decodable {
                    let original_transaction_id: String
                    let periods: Int
                    let entitled: Bool
                }

                let subscriptions: [Subscription]
            }
            let record = try await HTTPCalls.send(
                "\(api)/v1/apps/\(app)/customers/\(customer)", headers: ["Authorization": "Bearer \(key)"],
                reading: Record.self)
            return Set(
                record.subscriptions.map {
                    Line(id: $0.original_transaction_id, periods: $0.periods, entitled: $0.entitled)
                })
        }

        func kill() {
            for process in [server, worker, simulator] { process.kill() }
            try? FileManager.default.removeItem(at: root)
        }
    }
}
