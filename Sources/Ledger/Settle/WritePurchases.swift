import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Writes every one-time purchase in a verified answer.
    func writePurchases(in transaction: Transaction) throws {
        let drafts = purchases.values.filter(\.wasChecked).sorted { $0.rowID < $1.rowID }
        let rows = try drafts.compactMap { draft in try draft.state.map { try PurchaseWrite(draft, $0) } }
        guard !rows.isEmpty else { return }
        try transaction.query(Queries.writePurchases, rows: rows)
        let links = batch.flatMap { settlement in
            settlement.purchases.compactMap { key, _ in
                purchases[key].map { (settlement.claim.receiptID.number, $0.rowID) }
            }
        }
        if !links.isEmpty {
            try transaction.query(Queries.linkPurchases, [.int8s(links.map(\.0)), .int8s(links.map(\.1))])
        }
    }
}

/// A one-time purchase as a row of `write_purchases`.
struct PurchaseWrite {
    let draft: PurchaseDraft
    let state: PurchaseState
    let facts: String

    init(_ draft: PurchaseDraft, _ state: PurchaseState) throws {
        self.draft = draft
        self.state = state
        facts = try ColumnJSON.text(of: PurchaseFactsJSON(state))
    }
}

extension PurchaseWrite: ColumnarRow {
    static let columns: [Column<PurchaseWrite>] = [
        .int8("purchase_id", \.draft.rowID),
        .text("transaction_id", \.state.transactionID.text),
        .text("transaction_ids") { $0.state.facts.transactionIDs.sorted().map(\.text).joined(separator: ",") },
        .jsonb("facts", \.facts),
        .int4("quantity") { Int32(clamping: $0.state.quantity) },
        .instant("purchased_at", \.state.purchasedAt),
        .instant("revoked_at", \.state.revokedAt),
        .text("app_account_token", \.state.facts.appAccountToken?.value),
        .int8("version", \.draft.version),
        .instant("as_of", \.state.asOf),
        .microseconds("recorded_at", \.draft.recordedMicroseconds),
        .int8("polled_by", \.draft.polling.poller?.number),
        .instant("next_check_at", \.draft.polling.nextCheckAt),
    ]
}
