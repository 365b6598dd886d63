import Postgres
import SQL
import Subscriptions

/// A change of owner as rows to write.
private struct OwnershipWrite {
    let subscriptionID: Int64?
    let purchaseID: Int64?
    let recordedMicroseconds: Int64
    /// The row of the previous owner; nil when there was none: then the new owner owns it from the end of the last
    /// ownership, if any.
    let endedRowID: Int64?
    /// The owner now; nil for none.
    let customer: CustomerID?
    let cause: OwnershipCause?

    init?(_ draft: OwnershipDraft, subscriptionID: Int64?, purchaseID: Int64?, recordedMicroseconds: Int64) {
        guard draft.isChanged else { return nil }
        self.subscriptionID = subscriptionID
        self.purchaseID = purchaseID
        self.recordedMicroseconds = recordedMicroseconds
        endedRowID = draft.owner?.rowID
        customer = draft.current?.customer
        cause = draft.newOwner?.cause
    }
}

extension SettlementRun {
    /// Writes new owners and marks the uploads whose claims were resolved.
    func writeOwnerships(in transaction: Transaction) throws {
        let changes =
            subscriptions.values.compactMap {
                OwnershipWrite(
                    $0.ownership, subscriptionID: $0.rowID, purchaseID: nil,
                    recordedMicroseconds: $0.recordedMicroseconds)
            }
            + purchases.values.compactMap {
                OwnershipWrite(
                    $0.ownership, subscriptionID: nil, purchaseID: $0.rowID,
                    recordedMicroseconds: $0.recordedMicroseconds)
            }
        let ended = changes.filter { $0.endedRowID != nil }
        if !ended.isEmpty {
            try transaction.query(
                Queries.endOwnerships,
                [.int8s(ended.map(\.endedRowID)), .timestamptzs(ended.map(\.recordedMicroseconds))])
        }
        let begun = changes.filter { $0.customer != nil }
        if !begun.isEmpty {
            try transaction.query(
                Queries.insertOwnerships,
                [
                    .int8s(begun.map(\.subscriptionID)), .int8s(begun.map(\.purchaseID)),
                    .int8s(begun.map(\.customer?.number)),
                    .timestamptzs(begun.map { $0.endedRowID == nil ? nil : $0.recordedMicroseconds }),
                    .timestamptzs(begun.map(\.recordedMicroseconds)), .texts(begun.map(\.cause?.rawValue)),
                ])
        }
        try markResolvedUploads(in: transaction)
    }

    private func markResolvedUploads(in transaction: Transaction) throws {
        let resolved = batch.filter { $0.evidence != nil }.flatMap { settlement in
            (ownershipClaims[settlement.claim.receiptID] ?? []).filter(\.isNew).map {
                (settlement.claim.receiptID.number, $0.customer.number)
            }
        }
        guard !resolved.isEmpty else { return }
        try transaction.query(Queries.settleUploads, [.int8s(resolved.map(\.0)), .int8s(resolved.map(\.1))])
    }
}
