/// What restores do to one-time purchases: a non-consumable gets a new row, a consumable does not come back.
extension Account {
    /// Returns whether a receipt contains a purchase.
    func holds(_ purchase: OneTimePurchase, in receipt: ReceiptIdentity) -> Bool {
        guard purchase.isListed(at: receipt.creation) else { return false }
        guard purchase.product.kind == .consumable, let restoredAt = restoredAt(receipt) else { return true }
        return purchase.bookedAt >= restoredAt
    }

    /// Returns when the device of a receipt restored a purchase; nil when it made the purchase itself, or the receipt
    /// shows the purchase as it was made.
    func restored(_ purchase: OneTimePurchase, in receipt: ReceiptIdentity) -> StoreTime? {
        guard purchase.product.kind == .nonConsumable, let restoredAt = restoredAt(receipt) else { return nil }
        return purchase.bookedAt <= restoredAt ? restoredAt : nil
    }

    /// Returns when the device of a receipt restored. A restore that no customer of the seed makes happens when the
    /// receipt is written.
    private func restoredAt(_ receipt: ReceiptIdentity) -> StoreTime? {
        switch receipt.restore {
        case 0: nil
        case 1 where script.hasRestored: min(firstReceiptCreation, receipt.creation)
        case Seat.secondRestore: min(secondCustomerAt ?? receipt.creation, receipt.creation)
        default: receipt.creation
        }
    }
}

extension Seat {
    /// The restore whose ids the receipts of a second customer's device carry.
    static let secondRestore = 2

    /// The restore of a receipt about which nothing else is known.
    var ownRestore: Int {
        switch self {
        case .first: 0
        case .second: Self.secondRestore
        }
    }
}
