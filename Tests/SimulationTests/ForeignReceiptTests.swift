import AppStoreSimulator
import Crypto
import Foundation
import Subscriptions
import Testing
import Tracking

/// Server and worker as processes of their own, while strangers send receipts of another app: some that name two apps, so
/// that only Apple can tell, and answers 21004.
@Suite("A stranger's receipts stop nobody else")
struct ForeignReceiptTests {
    private struct Order: Decodable {
        let order_id, key: String
    }

    private static func send(
        _ served: ServedWorld, _ receipt: String, by customer: String
    ) async throws -> (status: UInt, body: String) {
        try await answer {
            try await HTTPCalls.send(
                "\(served.address)/v1/apps/\(served.app)/receipts", ["customer": customer, "receipt": receipt],
                headers: ["Authorization": "Bearer \(served.secret)"])
        }
    }

    private static func answer(_ call: () async throws -> Data) async throws -> (status: UInt, body: String) {
        do {
            return (200, String(decoding: try await call(), as: UTF8.self))
        } catch let refused as HTTPCalls.Refused {
            return (refused.status, refused.body)
        }
    }

    /// A device of a stranger's, with an order of its own.
    private static func prove(_ served: ServedWorld, _ receipt: String, _ order: Order) async throws -> UInt {
        let digest = SHA256.hash(data: try #require(Data(base64Encoded: receipt)))
            .map { String(format: "%02x", $0) }.joined()
        let proof = HMAC<SHA256>.authenticationCode(
            for: Data("\(order.order_id).\(digest)".utf8),
            using: SymmetricKey(data: try #require(Data(base64Encoded: order.key)))
        ).map { String(format: "%02x", $0) }.joined()
        return try await answer {
            try await HTTPCalls.send(
                "\(served.address)/v1/orders/\(order.order_id)/receipt", ["receipt": receipt, "proof": proof])
        }.status
    }

    private static func disguised(_ world: PretendWorld) throws -> String {
        let customer = world.simulator.createCustomer(CustomerScript())
        return try #require(
            world.simulator.receipt(
                of: customer.customer, writtenAt: world.clock.simulatorClock.milliseconds(), .disguised))
    }

    private func withWorker(_ served: ServedWorld, _ body: () async throws -> Void) async throws {
        try await served.world.serverSettings { settings in
            let worker = try PerennialProcess(["worker"], in: served.world, further: settings)
            defer { worker.kill() }
            try await body()
            _ = await worker.stop()
            try worker.forget()
        }
    }

    @Test("While they arrive by HTTP and by proofs, every honest upload succeeds")
    func honest() async throws {
        try await ServedWorld.with(seed: 71) { served in
            try await withWorker(served) {
                let first = served.world.simulator.createCustomer(CustomerScript())
                #expect(try await Self.send(served, first.receipt, by: first.customer).status == 200)
                let order = try await HTTPCalls.send(
                    "\(served.address)/v1/apps/\(served.app)/orders",
                    ["customer": "stranger", "product_id": "\(served.app).coins"],
                    headers: ["Authorization": "Bearer \(served.secret)", "Idempotency-Key": "one"], reading: Order.self
                )
                for round in 0..<20 {
                    let bad = try Self.disguised(served.world)
                    if round % 2 == 0 {
                        #expect(try await Self.send(served, bad, by: "stranger\(round)").status == 200, "it waits")
                    } else if round < 18 {
                        #expect(try await Self.prove(served, bad, order) == 200, "it waits")
                    }
                    let customer = served.world.simulator.createCustomer(CustomerScript())
                    let answer = try await Self.send(served, customer.receipt, by: customer.customer)
                    #expect(
                        answer.status == 200 && answer.body.contains(#""outcome":"verified""#), "\(round): \(answer)")
                    try await Task.sleep(for: .milliseconds(150))
                }
                #expect(try await served.world.tracker.ledger.apps.app(served.world.bundleID).pauses.isEmpty)
                #expect(
                    try await served.world.number(
                        "SELECT count(*) FROM ledger.observation WHERE status = 21004") >= 15)
            }
        }
    }

    @Test("A receipt of another app is refused by name at each door, and the status counts it")
    func refused() async throws {
        try await ServedWorld.with(seed: 72) { served in
            let customer = served.world.simulator.createCustomer(CustomerScript())
            let foreign = try #require(
                served.world.simulator.receipt(
                    of: customer.customer, writtenAt: served.world.clock.simulatorClock.milliseconds(), .foreign))
            let named = "The receipt is for \(served.app).other, not for \(served.app)."
            let answer = try await Self.send(served, foreign, by: "kim")
            #expect(answer.status == 422 && answer.body.contains(named), "\(answer)")
            let order = try await HTTPCalls.send(
                "\(served.address)/v1/apps/\(served.app)/orders",
                ["customer": "kim", "product_id": "\(served.app).coins"],
                headers: ["Authorization": "Bearer \(served.secret)", "Idempotency-Key": "one"], reading: Order.self)
            #expect(try await Self.prove(served, foreign, order) == 422)
            let file = FileManager.default.temporaryDirectory.appending(path: "foreign-\(UUID())")
            try Data(foreign.utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let add = try PerennialProcess(
                ["receipt", "add", "--app", served.app, "--customer", "kim", file.path], in: served.world)
            #expect(await add.end() == 1 && add.said.contains(named), "\(add.said)")
            try add.forget()
            let found = try await served.world.tracker.ledger.operations.status().refusedBundles
            #expect(found.map(\.named.text) == ["\(served.app).other"] && found.first?.receipts == 3)
            #expect(
                try await served.world.number(
                    "SELECT count(*) FROM ledger.upload JOIN ledger.customer USING (customer_id) WHERE name = 'kim'")
                    == 0)
        }
    }

    @Test("A secret rotated at Apple pauses the app by one trial, and `app rotate-secret` ends the pause at once")
    func rotated() async throws {
        try await ServedWorld.with(seed: 73) { served in
            try await withWorker(served) {
                let world = served.world
                func paused() async throws -> Bool {
                    try await !world.tracker.ledger.apps.app(world.bundleID).pauses.isEmpty
                }
                let one = world.simulator.createCustomer(CustomerScript())
                #expect(try await Self.send(served, one.receipt, by: one.customer).status == 200)
                let secret = String(repeating: "c", count: 32)
                world.simulator.rotateSecret(to: secret)
                let other = world.simulator.createCustomer(CustomerScript())
                let waiting = try await Self.send(served, other.receipt, by: other.customer)
                #expect(waiting.body.contains(#""outcome":"pending""#), "\(waiting)")
                try await world.eventually(within: 20) { try await paused() }
                let file = FileManager.default.temporaryDirectory.appending(path: "secret-\(UUID())")
                try Data(secret.utf8).write(to: file)
                defer { try? FileManager.default.removeItem(at: file) }
                let rotate = try PerennialProcess(
                    ["app", "rotate-secret", served.app, "--shared-secret-file", file.path], in: world)
                #expect(await rotate.end() == 0, "\(rotate.said)")
                try rotate.forget()
                #expect(try await !paused())
                // The one that waited is asked about without another upload.
                try await world.eventually(within: 20) {
                    try await world.number(
                        """
                        SELECT count(*) FROM ledger.upload u JOIN ledger.customer c USING (customer_id)
                        JOIN ledger.receipt r USING (receipt_id)
                        WHERE c.name = '\(other.customer)' AND r.outcome = 'verified'
                        """) == 1
                }
            }
        }
    }
}
