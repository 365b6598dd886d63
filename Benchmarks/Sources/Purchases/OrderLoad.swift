import Foundation
import Subscriptions
import Tracking

/// Concurrent callers that place orders, and acknowledge and read deliveries, as a server does for its requests.
struct OrderLoad {
    let ledger: SubscriptionLedger
    /// Callers at a time.
    let callers: Int

    /// Orders of one customer; fewer than may be open.
    private static let ordersOfCustomer = 5

    /// Places orders of customers who are new and come back; returns how many.
    func place(_ orders: Int, of product: ProductID, round: Int) async throws -> Int {
        try await eachCaller { caller in
            let mine = stride(from: caller, to: orders, by: callers)
            for order in mine {
                let customer = "o\(round)-\(order % max(1, orders / Self.ordersOfCustomer))"
                _ = try await ledger.orders.place(
                    OrderRequest(
                        customer: customer, productID: product, priceMilliunits: 4_990, currency: "USD",
                        device: "device of \(customer)"),
                    of: World.app, requestKey: UUID().uuidString)
            }
            return Array(mine).count
        }
    }

    /// Acknowledges deliveries, so many in a call; returns how many changed.
    func acknowledge(_ ids: [Int64], inBatchesOf size: Int) async throws -> Int {
        let batches = stride(from: 0, to: ids.count, by: size).map { Array(ids[$0..<min($0 + size, ids.count)]) }
        return try await eachCaller { caller in
            var first = 0
            for batch in stride(from: caller, to: batches.count, by: callers).map({ batches[$0] }) {
                first += try await ledger.deliveries.acknowledge(batch, of: World.app).count { $0.isFirst }
            }
            return first
        }
    }

    /// The seconds that each of some reads of due deliveries takes, one after the other, after random positions.
    func read(_ reads: Int, of limit: Int, upTo last: Int64) async throws -> [Double] {
        var seconds: [Double] = []
        for _ in 0..<reads {
            let position = Int64.random(in: 0...max(0, last - Int64(limit)))
            let start = ContinuousClock.now
            let page = try await ledger.deliveries.read(
                of: World.app, state: .due, after: position, limit: limit)
            seconds.append((ContinuousClock.now - start) / .seconds(1))
            guard page.deliveries.count == limit else { throw TooFew(deliveries: page.deliveries.count) }
        }
        return seconds
    }

    private func eachCaller(_ work: @escaping @Sendable (Int) async throws -> Int) async throws -> Int {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for caller in 0..<callers { group.addTask { try await work(caller) } }
            return try await group.reduce(0, +)
        }
    }

    /// A read that returned less than there is.
    struct TooFew: Error {
        let deliveries: Int
    }
}
