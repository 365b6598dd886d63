import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Writes every one-time purchase in a verified answer.
    func writePurchases(in transaction: Transaction) throws {
        let drafts = purchases.values.filter(\.wasChecked).sorted { $0.rowID < $1.rowID }
        let rows = drafts.compactMap { draft in draft.state.map { (draft: draft, state: $0) } }
        guard !rows.isEmpty else { return }
        let states = rows.map(\.state)
        try transaction.query(
            Queries.writePurchases,
            [
                .int8s(rows.map(\.draft.rowID)), .texts(states.map(\.transactionID.text)),
                .texts(states.map { $0.facts.transactionIDs.sorted().map(\.text).joined(separator: ",") }),
                .jsonbs(try states.map { try ColumnJSON.text(of: PurchaseFactsJSON($0.facts)) }),
                .int4s(states.map { Int32(clamping: $0.quantity) }), .instants(states.map(\.purchasedAt)),
                .instants(states.map(\.revokedAt)), .texts(states.map { $0.facts.appAccountToken?.value }),
                .int8s(rows.map(\.draft.version)), .instants(states.map(\.asOf)),
                .timestamptzs(rows.map(\.draft.recordedMicroseconds)),
                .int8s(rows.map(\.draft.polling.poller?.number)), .instants(rows.map(\.draft.polling.nextCheckAt)),
            ])
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
