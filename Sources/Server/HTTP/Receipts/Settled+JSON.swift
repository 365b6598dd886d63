import Ledger
import Subscriptions

extension Settled.SubscriptionOutcome {
    /// Returns the subscription as POST receipts reports it to the customer who sent the receipt.
    func json(for customer: String) -> JSONValue {
        [
            "original_transaction_id": .string(id.text),
            "environment": .string(environment.rawValue),
            "product_id": .string(verdict.productID.text),
            "state": .string(verdict.state.rawValue),
            "reason": .optional(verdict.reason?.rawValue),
            "entitled": .bool(verdict.entitled),
            "expires_at": .optional(verdict.expiresAt.iso8601),
            "entitled_until": .optional(verdict.entitledUntil?.iso8601),
            "flags": .array(verdict.flags.map { .string($0.rawValue) }),
            "ownership": ownership[AppCustomerID(customer)]?.json ?? nil,
        ]
    }
}

extension OwnershipAnswer {
    /// The result of the customer's claim, with the reason of a refusal.
    var json: JSONValue {
        switch self {
        case .held: ["answer": "held", "reason": nil]
        case .assigned: ["answer": "assigned", "reason": nil]
        case .transferred: ["answer": "transferred", "reason": nil]
        case .refused(let reason): ["answer": "refused", "reason": .string(reason)]
        }
    }
}
