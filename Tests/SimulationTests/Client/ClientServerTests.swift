import AppStoreSimulator
import Foundation
import PerennialClient
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The client library against the real server.
@Suite("The client library asks a real server")
struct ClientServerTests {
    @Test("Entitlements are read, confirmed by their tag, read in batches, and kept while the server is away")
    func entitlements() async throws {
        try await ServedWorld.with(seed: 41) { served in
            let statuses = Mutex<[Int]>([])
            let noting = Transport { request in
                let answer = try await Transport.urlSession.send(request)
                statuses.withLock { $0.append(answer.1.statusCode) }
                return answer
            }
            let server = served.server(key: served.secret, transport: noting)
            let customer = served.world.simulator.createCustomer(CustomerScript())
            let before = try await server.entitlements(of: customer.customer)
            #expect(before.entitlements.isEmpty && !before.isStale && before.customer == customer.customer)
            let answer = try await server.send(Upload(receipt: customer.receipt, customer: customer.customer))
            #expect(answer.result == .succeeded && answer.advice == nil && answer.receiptID != nil)
            let product = try #require(answer.entitlements.first?.name)
            let cache = EntitlementCache(server, usableSeconds: 3_600, pauseSeconds: 0)
            statuses.withLock { $0 = [] }
            for _ in 0..<2 {
                let now = try await cache.entitlements(of: customer.customer)
                #expect(now.grants(product) && !now.grants("other") && now.failure == nil)
                #expect(now.entitlements.first?.state == .active && now.entitlements.first?.basis == .verified)
            }
            #expect(statuses.withLock { $0 } == [200, 304])
            let names = [customer.customer, "böb / ?", customer.customer]
            let batch = try await server.entitlements(ofEach: names)
            #expect(batch.map(\.customer) == names && batch.map { $0.grants(product) } == [true, false, true])
            #expect(try await server.entitlements(of: "böb / ?").customer == "böb / ?")
            _ = await served.process.stop()
            let kept = try await cache.entitlements(of: customer.customer)
            #expect(kept.grants(product) && kept.isStale && kept.failure?.cause == .unreachable)
            #expect(kept.entitlements.first?.checkedAt != nil)
            await #expect(throws: PerennialError.self) { try await cache.entitlements(of: "stranger") }
        }
    }

    @Test("Orders are placed once, read and reported, by a device without a key too")
    func orders() async throws {
        try await ServedWorld.with(seed: 42) { served in
            let server = served.server
            let new = NewOrder(
                customer: "kim", productID: served.app + ".coins", quantity: 2,
                price: Price("0.99", "USD"), device: "phone")
            let placed = try await server.place(new)
            #expect(try await server.place(new) == placed)
            #expect(placed.state == .created && Data(base64Encoded: placed.key)?.count == 32)
            #expect(UUID(uuidString: placed.appAccountToken) != nil && placed.expiresAt > .now)
            // A service hands it to the device in the server's form.
            let handed = try JSONDecoder().decode(PlacedOrder.self, from: try JSONEncoder().encode(placed))
            let device = served.server(key: nil)
            #expect(try await device.report(.purchasing, of: handed) == .purchasing)
            #expect(try await device.report(.failed, code: "SKErrorDomain 2", of: handed) == .failed)
            let order = try await server.order(placed.id)
            #expect(order.state == .failed && order.quantity == 2 && order.customer == "kim" && order.paidAt == nil)
            let second = try await server.place(
                NewOrder(customer: "kim", productID: served.app + ".coins"))
            let page = try await server.orders(of: "kim", limit: 1)
            #expect(page.orders.map(\.id) == [placed.id] && page.next == placed.id)
            #expect(try await server.orders(of: "kim", after: page.next).orders.map(\.id) == [second.id])
            #expect(try await server.orders(of: "kim", in: .created).orders.map(\.id) == [second.id])

            let stranger = try JSONDecoder().decode(
                PlacedOrder.self,
                from: Data(
                    """
                    {"order_id":"\(UUID().uuidString.lowercased())","key":"\(placed.key)","state":"created",
                     "app_account_token":"\(placed.appAccountToken)","expires_at":"2030-01-01T00:00:00.000Z"}
                    """.utf8))
            let failures: [(PerennialError.Disposition, Problem.Kind, @Sendable () async throws -> Void)] = [
                (.reject, .proofRefused, { _ = try await device.report(.cancelled, of: stranger) }),
                (.reject, .notFound, { _ = try await server.order(UUID().uuidString.lowercased()) }),
                (.reject, .invalid, { _ = try await server.place(NewOrder(customer: "kim", productID: "nothing")) }),
                (.alarm, .unauthenticated, { _ = try await device.order(placed.id) }),
                (
                    .alarm, .unauthenticated,
                    { _ = try await served.server(key: "perennial_x").entitlements(of: "kim") }
                ),
            ]
            for (disposition, kind, call) in failures {
                let error = await #expect(throws: PerennialError.self) { try await call() }
                #expect(error?.problem?.kind == kind && error?.disposition == disposition, "\(kind)")
                #expect(error?.problem?.requestID != nil)
            }
        }
    }

    @Test("A receipt that Apple refuses is answered, and text that is no receipt is an error")
    func refusals() async throws {
        try await ServedWorld.with(seed: 43) { served in
            let customer = served.world.simulator.createCustomer(CustomerScript())
            let foreign = try #require(
                served.world.simulator.receipt(
                    of: customer.customer, writtenAt: served.world.clock.simulatorClock.milliseconds(), .foreign))
            let answer = try await served.server.send(Upload(receipt: foreign, customer: "kim"))
            #expect(answer.result == .failed && answer.reason != nil && answer.mayFinish.isEmpty)
            let error = await #expect(throws: PerennialError.self) {
                try await served.server.send(Upload(receipt: "!!", customer: "kim"))
            }
            #expect(error?.problem?.kind == .notAReceipt && error?.disposition == .reject)
        }
    }

    @Test("A signed transaction and the id of one are uploads without a receipt, believed in different ways")
    func withoutReceipts() async throws {
        try await ServedWorld.with(seed: 45) { served in
            let customer = served.world.simulator.createCustomer(CustomerScript())
            let devices = try served.world.simulator.signedTransactions()
            let text = try #require(devices.first { $0.customer == customer.customer }).signedTransaction
            let signed = Upload(.signedTransaction(text), customer: customer.customer)
            let answer = try await served.server.send(signed)
            #expect(answer.result == .succeeded && answer.vouching == .signed, "\(answer)")
            #expect(answer.entitlements.first?.isGranted == true)
            let pointer = try await served.server.send(
                Upload(.transactionID(customer.originalTransactionID), customer: "stranger"))
            #expect(pointer.vouching == .pointer && pointer.entitlements.isEmpty, "\(pointer)")
            let receipt = try await served.server.send(
                Upload(receipt: customer.receipt, customer: customer.customer))
            #expect(receipt.vouching == .vouched)
            let error = try await served.server.send(Upload(.signedTransaction(text + "x"), customer: "stranger"))
            #expect(error.result == .failed && error.vouching == nil)
        }
    }

    @Test("While Apple is away an upload stays pending in the queue, and is answered when Apple is back")
    func pending() async throws {
        try await ServedWorld.with(seed: 44) { served in
            let customer = served.world.simulator.createCustomer(CustomerScript())
            var limits = UploadLimits()
            limits.retrySecondsMin = 0.05
            limits.retrySecondsMax = 0.3
            let storage = UploadStorage.folder(
                FileManager.default.temporaryDirectory.appending(path: "uploads-\(UUID())"))
            let queue = try await UploadQueue(served.server, storage: storage, limits: limits)
            served.world.simulator.add(Fault(.http))
            try await queue.add(Upload(receipt: customer.receipt, customer: customer.customer))
            let (reports, reported) = AsyncStream.makeStream(of: String.self)
            let simulator = served.world.simulator
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await queue.run { _, report in
                        switch report {
                        case .pending(let answer, let seconds):
                            #expect(answer.advice == .retry && answer.retryAfterSeconds == 5 && seconds <= 0.3)
                            simulator.clearFaults()
                            reported.yield("pending")
                        case .answered(let answer): reported.yield(answer.result.rawValue)
                        case .refused(let error), .failing(let error, _): reported.yield("\(error)")
                        }
                    }
                }
                var said: [String] = []
                for await report in reports {
                    said.append(report)
                    if report != "pending" { break }
                }
                #expect(said.first == "pending" && said.last == "succeeded", "\(said)")
                while await queue.count > 0 { try await Task.sleep(for: .milliseconds(10)) }
                group.cancelAll()
            }
        }
    }
}
