import Foundation
import PerennialClient

/// An app that buys coins: it places orders, pays, uploads the receipts and finishes the transactions. It may be killed
/// at any step and started again on the same folder. A test starts it as a process of its own.
@main struct Probe {
    static func main() async throws {
        let settings = ProcessInfo.processInfo.environment
        guard let server = settings["PROBE_SERVER"].flatMap(URL.init(string:)), let key = settings["PROBE_KEY"],
            let simulator = settings["PROBE_SIMULATOR"].flatMap(URL.init(string:)), let app = settings["PROBE_APP"],
            let customer = settings["PROBE_CUSTOMER"], let folder = settings["PROBE_FOLDER"],
            let count = settings["PROBE_PURCHASES"].flatMap(Int.init)
        else { return print("A test starts this program, with its settings in the environment.") }
        let steps = Steps(killAt: settings["PROBE_KILL_AT"].flatMap(Int.init) ?? 0)
        let place = URL(filePath: folder)
        let transport = Transport.urlSession.counted(by: steps)
        let probe = Probe(
            service: PerennialServer(at: server, app: app, key: key, transport: transport),
            device: PerennialServer(at: server, app: app, transport: transport),
            store: Store(simulator: simulator, customer: customer, folder: place), customer: customer, folder: place,
            isDevice: settings["PROBE_ROUTE"] == "device", steps: steps)
        try await probe.buy(count)
        print("done after \(steps.reached) steps")
    }

    /// The server as a service with a key sees it. It places the orders.
    let service: PerennialServer
    /// The server as a device without a key sees it.
    let device: PerennialServer
    let store: Store
    let customer: String
    let folder: URL
    /// Whether receipts go by the route for devices.
    let isDevice: Bool
    let steps: Steps

    /// Buys some coins and waits until every upload is answered and every transaction finished.
    func buy(_ count: Int) async throws {
        var limits = UploadLimits()
        limits.retrySecondsMin = 0.01
        limits.retrySecondsMax = 6
        let storage = UploadStorage.folder(folder.appending(path: "uploads")).counted(by: steps)
        let queue = try await UploadQueue(isDevice ? device : service, storage: storage, limits: limits)
        for number in 0..<count {
            let order = try await order(number)
            // A device's proof ties the payment to the order, a service's order names it by its token.
            let transaction = try await store.transaction(number, isDevice ? nil : order.appAccountToken, steps)
            guard !store.isFinished(transaction) else { continue }
            let receipt = try await store.receipt(number)
            try await queue.add(
                isDevice
                    ? try Upload(receipt: receipt, of: order)
                    : Upload(
                        receipt: receipt.base64EncodedString(), customer: customer, purpose: .purchase,
                        order: order.id, transactionID: transaction))
        }
        try await untilEmpty(queue)
    }

    /// The order with this number, the same one each time: what was asked and what was answered is kept.
    private func order(_ number: Int) async throws -> PlacedOrder {
        let (asked, placed) = (folder.appending(path: "order-\(number)"), folder.appending(path: "placed-\(number)"))
        if let kept = try? Data(contentsOf: placed) { return try JSONDecoder().decode(PlacedOrder.self, from: kept) }
        if !FileManager.default.fileExists(atPath: asked.path) {
            let new = NewOrder(customer: customer, productID: service.app + ".coins", quantity: number + 1)
            try JSONEncoder().encode(new).write(to: asked, options: .atomic)
            steps.reach("after an order is kept")
        }
        let order = try await service.place(try JSONDecoder().decode(NewOrder.self, from: Data(contentsOf: asked)))
        try JSONEncoder().encode(order).write(to: placed, options: .atomic)
        steps.reach("after a placed order is kept")
        return order
    }

    private func untilEmpty(_ queue: UploadQueue) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await queue.run(took) }
            while await queue.count > 0 { try await Task.sleep(for: .milliseconds(5)) }
            group.cancelAll()
        }
    }

    /// Finishes what the server has stored. An answer without the purchase is no success, and comes again.
    private func took(_ upload: Upload, _ report: UploadReport) async throws {
        switch report {
        case .answered(let answer):
            guard answer.result == .succeeded else { throw Unexpected(text: "\(answer)") }
            for transaction in answer.mayFinish {
                steps.reach("before a transaction is finished")
                try store.finish(transaction)
            }
            steps.reach("after the transactions are finished")
        case .refused(let error): throw Unexpected(text: "\(error)")
        case .pending(let answer, _): print("pending: \(answer)")
        case .failing(let error, let seconds): print("failing, again after \(seconds) s: \(error)")
        }
    }

    private struct Unexpected: Error {
        let text: String

        init(text: String) {
            self.text = text
            print("unexpected: \(text)")
        }
    }
}
