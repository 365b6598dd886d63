import AppStoreSimulator
import Foundation
import Testing

/// One customer's purchase, from the order to the last delivery. The client that leads it may die at any step, and begins
/// again with what its file has.
struct PurchaseRound {
    /// Apple refunds while workers still look for it: 90 days are 180 seconds here.
    static let refundWithinMilliseconds: Int64 = 100_000

    struct TooSlow: Error, CustomStringConvertible {
        let description: String
    }

    let plan: RoundPlan
    let world: ShopWorld
    let customer: String
    private let file: URL
    let deadline = ContinuousClock.now + .seconds(120)

    /// Makes the customer at the App Store.
    init(_ plan: RoundPlan, in world: ShopWorld) async throws {
        struct Made: Decodable { let customer: String }
        (self.plan, self.world) = (plan, world)
        customer = try await HTTPCalls.send(
            world.machines.store + "/customers", ["kind": "newcomer"], reading: Made.self
        ).customer
        file = FileManager.default.temporaryDirectory.appending(path: "device-\(UUID())")
        try ShopDevice(customer: customer).write(to: file)
        await world.kills.plan(plan.kill, for: customer)
    }

    /// Lives until everything is delivered.
    func run() async throws {
        while true {
            do {
                try await live()
                try FileManager.default.removeItem(at: file)
                return
            } catch is Kills.ClientDied {
                continue
            }
        }
    }

    private func live() async throws {
        var device = try ShopDevice(from: file)
        try await order(&device)
        try await buy(&device)
        while !device.mayFinish {
            if try await upload(device) {
                device.mayFinish = true
                try device.write(to: file)
            } else {
                // A device may call ten times a minute about an order.
                try await pause(milliseconds: plan.tie == .proof ? 3_000 : 300)
            }
        }
        if plan.refund == .beforeFinish { try await refund(&device) }
        try await finish(&device)
        if plan.refund == .afterFinish { try await refund(&device) }
        if plan.isSentAgain { _ = try await upload(device) }
        try await endSubscription()
        try await awaitDeliveries()
    }

    private func order(_ device: inout ShopDevice) async throws {
        guard device.order == nil else { return }
        device.order = try await world.kills.at(.order, of: [customer]) {
            try await repeating {
                try await HTTPCalls.send(
                    await world.api("orders"),
                    ["customer": customer, "product_id": plan.productID, "quantity": plan.quantity],
                    headers: world.keyHeader.merging(["Idempotency-Key": plan.requestKey]) { $1 },
                    reading: ShopDevice.Order.self)
            }
        }
        try device.write(to: file)
    }

    /// Pays, unless the payment queue of the device has the transaction of a client that died.
    private func buy(_ device: inout ShopDevice) async throws {
        guard device.transaction == nil, let order = device.order else { return }
        let token = plan.tie == .token ? order.app_account_token : nil
        let bought = try await world.kills.at(.buy, of: [customer]) {
            let queue = try await truth()
            if let known = queue.deliveries.first {
                return Bought(transaction: known.transactionID, receipt: try await currentReceipt())
            }
            return try await pay(token, asked: queue.pendingPurchases.first?.pendingID)
        }
        (device.transaction, device.receipt) = (bought.transaction, bought.receipt)
        try device.write(to: file)
        if plan.lagSeconds > 0 {
            try await HTTPCalls.send(
                world.machines.store + "/lag", ["seconds": plan.lagSeconds, "customer": customer])
        }
    }

    private struct Bought: Sendable {
        let transaction, receipt: String
    }

    private func pay(_ token: String?, asked pendingID: String?) async throws -> Bought {
        struct Answer: Decodable {
            let transaction: DeliveryTruth?
            let receipt, pending_id: String?
        }
        var pendingID = pendingID
        if pendingID == nil {
            var body: [String: any Sendable] =
                plan.item == .weekly
                ? ["action": "subscribe", "product": "weekly"]
                : ["action": "buy", "item": "\(plan.item)", "quantity": plan.quantity, "deferred": plan.isDeferred]
            if let token { body["app_account_token"] = token }
            let answer = try await act(body, reading: Answer.self)
            if let made = answer.transaction, let receipt = answer.receipt {
                return Bought(transaction: made.transactionID, receipt: receipt)
            }
            pendingID = answer.pending_id
        }
        let answer = try await act(["action": "approve", "pending_id": pendingID ?? ""], reading: Answer.self)
        return Bought(
            transaction: try #require(answer.transaction).transactionID, receipt: try #require(answer.receipt))
    }

    private func finish(_ device: inout ShopDevice) async throws {
        guard !device.isFinished, let transaction = device.transaction else { return }
        try await world.kills.at(.finish, of: [customer]) {
            try await act(["action": "finish", "transaction_id": transaction])
        }
        device.isFinished = true
        try device.write(to: file)
    }

    /// Apple refunds, and reverses it where that is planned; each is delivered before the next.
    private func refund(_ device: inout ShopDevice) async throws {
        guard let transaction = device.transaction else { return }
        let isPeriod = plan.item == .weekly
        if !device.isRefunded {
            try await world.kills.at(.refund, of: [customer]) {
                let bought = try await truth()
                guard let own = bought.deliveries.first(where: { $0.transactionID == transaction }),
                    own.refunded == nil, bought.now - own.purchase < Self.refundWithinMilliseconds
                else { return }
                let action = isPeriod ? "refund" : "refund_purchase"
                try await act(["action": action, "transaction_id": transaction, "keep_renewal": true])
            }
            device.isRefunded = true
            try device.write(to: file)
        }
        try await awaitDeliveries(of: transaction)
        guard plan.isReversed, !device.isReversed else { return }
        let now = try await truth()
        if let own = now.deliveries.first(where: { $0.transactionID == transaction }), own.refunded != nil,
            own.turns > 1, now.now - own.purchase < Self.refundWithinMilliseconds
        {
            let action = isPeriod ? "reverse_refund" : "reverse_purchase_refund"
            try await act(["action": action, "transaction_id": transaction])
        }
        device.isReversed = true
        try device.write(to: file)
        try await awaitDeliveries(of: transaction)
    }

    /// Turns renewal off, so that the truth comes to an end; periods that began until then are delivered too.
    private func endSubscription() async throws {
        guard plan.item == .weekly else { return }
        guard try await truth().subscriptions.first?.autoRenewStatus == true else { return }
        try await act(["action": "disable_renewal"])
    }
}
