import AppStoreSimulator
import Crypto
import Foundation
import Postgres
import Testing

/// The calls of a round.
extension PurchaseRound {
    private struct UploadAnswer: Decodable {
        let result: String
        let may_finish: [String]
    }

    /// Sends the receipt as the plan ties it; answers whether the transaction may be finished. Everything that may be
    /// finished must be stored with its delivery.
    func upload(_ device: ShopDevice) async throws -> Bool {
        let (order, transaction) = (try #require(device.order), try #require(device.transaction))
        let receipt = try #require(device.receipt)
        let mayFinish = try await world.kills.at(.upload, of: [customer]) {
            do {
                return try await send(receipt, for: order).may_finish
            } catch let refused as HTTPCalls.Refused where !refused.isTemporary {
                throw refused
            } catch {
                return [String]()
            }
        }
        for id in mayFinish {
            let stored = Statement(
                name: "stored", sql: "SELECT FROM perennial.delivery_log WHERE transaction_id = $1::text AND turn = 1")
            let isStored = try await repeating { try await world.ledger.query(stored, [.text(id)]).count == 1 }
            #expect(isStored, "\(id) of \(customer) may be finished, but is not stored: \(plan)")
        }
        return mayFinish.contains(transaction)
    }

    private func send(_ receipt: String, for order: ShopDevice.Order) async throws -> UploadAnswer {
        if plan.tie == .proof {
            let bytes = try #require(Data(base64Encoded: receipt))
            let key = SymmetricKey(data: try #require(Data(base64Encoded: order.key)))
            let text = "\(order.order_id).\(SHA256.hash(data: bytes).hex)"
            let proof = HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key).hex
            return try await HTTPCalls.send(
                await world.machines.address + "/v1/orders/\(order.order_id)/receipt",
                ["receipt": receipt, "proof": proof], reading: UploadAnswer.self)
        }
        var body: [String: any Sendable] = ["customer": customer, "receipt": receipt]
        if plan.tie == .order { (body["purpose"], body["order"]) = ("purchase", order.order_id) }
        return try await HTTPCalls.send(
            await world.api("receipts"), body, headers: world.keyHeader, reading: UploadAnswer.self)
    }

    /// Waits until everything that the store knows was delivered and acknowledged, or what is of one transaction.
    func awaitDeliveries(of transaction: String? = nil) async throws {
        struct Page: Decodable {
            let deliveries: [Delivery]
        }
        while true {
            let truth = try await truth()
            let expected = truth.turns.filter { transaction == nil || $0.transaction == transaction }
            let page = try await repeating {
                try await HTTPCalls.send(
                    await world.api("deliveries?state=acknowledged&customer=\(customer)"), headers: world.keyHeader,
                    reading: Page.self)
            }
            let found = page.deliveries.map { Turn(transaction: $0.transaction_id, turn: $0.turn) }
            let isOver = transaction != nil || truth.subscriptions.allSatisfy { !$0.autoRenewStatus }
            if isOver, Set(expected).isSubset(of: found) { return }
            try await pause(milliseconds: 200, "delivered \(found) instead of \(expected)")
        }
    }

    /// Repeats a call until it is answered, as after a lost connection.
    func repeating<Answer: Sendable>(_ call: @Sendable () async throws -> Answer) async throws -> Answer {
        while true {
            do {
                return try await call()
            } catch let refused as HTTPCalls.Refused where !refused.isTemporary {
                throw refused
            } catch {
                try await pause(milliseconds: 100, "\(error)")
            }
        }
    }

    func pause(milliseconds: Int, _ reason: String = "") async throws {
        guard ContinuousClock.now < deadline else {
            throw TooSlow(description: "\(plan) of \(customer) does not end. \(reason)")
        }
        try await Task.sleep(for: .milliseconds(milliseconds))
    }

    func truth() async throws -> CustomerTruth {
        try await HTTPCalls.send(world.machines.store + "/truth/\(customer)", reading: CustomerTruth.self)
    }

    func currentReceipt() async throws -> String {
        struct Current: Decodable { let receipt: String }
        return try await HTTPCalls.send(world.machines.store + "/receipts/\(customer)", reading: Current.self).receipt
    }

    func act(_ body: [String: any Sendable]) async throws {
        try await HTTPCalls.send(world.machines.store + "/customers/\(customer)/actions", body)
    }

    func act<Answer: Decodable>(_ body: [String: any Sendable], reading: Answer.Type) async throws -> Answer {
        try await HTTPCalls.send(
            world.machines.store + "/customers/\(customer)/actions", body, reading: reading)
    }
}

extension Sequence<UInt8> {
    fileprivate var hex: String { map { String(format: "%02x", $0) }.joined() }
}
