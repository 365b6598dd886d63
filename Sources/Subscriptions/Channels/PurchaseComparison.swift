/// Compares what both channels state about one one-time purchase.
struct PurchaseComparison {
    private var list: DifferenceList

    init(
        _ receipt: PurchaseFacts?, _ server: PurchaseFacts?, key: PurchaseKey, consumables: Set<TransactionID>,
        isOld: Bool
    ) {
        list = DifferenceList(of: key.originalTransactionID)
        guard let receipt, let server else {
            let transactions = receipt?.transactionIDs ?? server?.transactionIDs ?? []
            let isConsumable = !transactions.isDisjoint(with: consumables)
            let explanation: ChannelDifference.Explanation? =
                receipt != nil ? nil : isConsumable ? .finishedConsumable : isOld ? .oldReceipt : nil
            list.add(
                .purchase, of: transactions.min(), receipt?.summary, server?.summary, explanation: explanation)
            return
        }
        compare(receipt, server, of: receipt.transactionIDs.union(server.transactionIDs).min())
    }

    /// What differs.
    var differences: [ChannelDifference] { list.differences }

    private mutating func compare(_ left: PurchaseFacts, _ right: PurchaseFacts, of transaction: TransactionID?) {
        let (leftTerms, rightTerms) = (left.terms.value, right.terms.value)
        list.add(
            .purchasedAt, of: transaction, leftTerms.purchasedAt.iso8601, rightTerms.purchasedAt.iso8601,
            explanation: leftTerms.purchasedAt > rightTerms.purchasedAt ? .restored : nil)
        list.add(.quantity, of: transaction, "\(leftTerms.quantity)", "\(rightTerms.quantity)")
        // A device's receipt does not speak of a refund that came after it.
        if left.revocation.origin != .unspoken {
            list.add(
                .cancelledAt, of: transaction, left.revocation.value.cancelledAt?.iso8601,
                right.revocation.value.cancelledAt?.iso8601)
        }
        list.addSaid(.ownership, of: transaction, left.ownership?.value.raw, right.ownership?.value.raw)
        list.addSaid(
            .appAccountToken, of: transaction, left.appAccountToken?.value.lowercased(),
            right.appAccountToken?.value.lowercased())
    }
}

extension PurchaseFacts {
    /// The purchase in a few words.
    fileprivate var summary: String { "\(key.productID.text) \(terms.value.purchasedAt.iso8601)" }
}
