import AppStoreSimulator

/// One turn of the deliveries of a transaction.
struct Turn: Hashable, CustomStringConvertible {
    let transaction: String
    let turn: Int

    var description: String { "\(transaction) turn \(turn)" }
}

extension DeliveryTruth {
    /// How many turns the service must have seen: the give, each refund that Apple showed, and each reversal. A refund
    /// after a consumable was finished shows in no answer.
    var turns: Int {
        let seen = refunds.filter { kind != .consumable || finished == nil || $0.at < finished ?? .max }
        return 1 + seen.count + seen.count { $0.reversed != nil }
    }
}

extension CustomerTruth {
    /// All turns that must have been delivered.
    var turns: [Turn] {
        deliveries.flatMap { one in
            (1...one.turns).map { Turn(transaction: one.transactionID, turn: $0) }
        }
    }
}
