/// The answer to an action: the truth afterwards, and the transaction that the action made.
package struct ActionAnswer: Encodable, Sendable {
    /// The customer's truth after the action.
    package var truth: CustomerTruth
    /// The purchase or period that the action made.
    package var transaction: DeliveryTruth?
    /// A receipt of the buyer's device that contains it, in Base64.
    package var receipt: String?
    /// The purchase that waits for an approval.
    package var pendingID: String?

    enum CodingKeys: String, CodingKey {
        case transaction, receipt
        case pendingID = "pending_id"
    }

    /// Writes the truth, and the other fields beside its own.
    package func encode(to encoder: any Encoder) throws {
        try truth.encode(to: encoder)
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encodeIfPresent(transaction, forKey: .transaction)
        try values.encodeIfPresent(receipt, forKey: .receipt)
        try values.encodeIfPresent(pendingID, forKey: .pendingID)
    }
}

extension ActionAnswer {
    init(_ outcome: ActionOutcome, of account: Account, in world: World) {
        truth = CustomerTruth(account, in: world)
        let buyer: Buyer
        switch outcome {
        case .changed: return
        case .pending(let pending):
            pendingID = pending.id
            return
        case .bought(let number):
            let purchase = account.purchases.purchases[number]
            buyer = purchase.buyer
            transaction = DeliveryTruth(purchase, of: account, in: world)
        case .booked(let subscription, let number):
            let life = account.lives[subscription]
            buyer = life.periods[number].buyer
            transaction = DeliveryTruth(life.periods[number], of: life, account, in: world)
        }
        receipt = world.receipt(
            of: account, creation: account.now, restore: account.restore(at: account.now, of: buyer.seat))
    }
}
