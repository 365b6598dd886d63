import Postgres
import SQL
import Subscriptions

/// The batch's one-time purchases as they are stored.
struct LoadedPurchases {
    let drafts: [PurchaseRowKey: PurchaseDraft]

    /// Decodes the rows. A caller that only reads does not lock the owners and does not get them.
    init(
        _ rows: [Row], recordedMicroseconds: Int64, lockingOwners: Bool = true, in transaction: Transaction
    ) throws {
        let ids = Parameter.int8s(try rows.map { try $0.int8("purchase_id") })
        let owners = try grouped(
            rows.isEmpty || !lockingOwners ? [] : transaction.query(Queries.readOwners, [.int8s([]), ids]),
            Owner.init(row:), by: "purchase_id")
        drafts = try rows.reduce(into: [:]) { drafts, row in
            let draft = try PurchaseDraft(
                row: row, owner: owners[try row.int8("purchase_id")]?.first, recordedMicroseconds: recordedMicroseconds)
            drafts[draft.key] = draft
        }
    }
}

extension PurchaseDraft {
    fileprivate init(row: Row, owner: Owner?, recordedMicroseconds: Int64) throws {
        let before = try row.timestamptzIfPresent("recorded_at")
        let purchase = PurchaseKey(
            originalTransactionID: OriginalTransactionID(try row.text("original_transaction_id")),
            productID: ProductID(try row.text("product_id")))
        rowID = try row.int8("purchase_id")
        key = PurchaseRowKey(
            appID: try row.int4("app_id"), environment: try row.word("environment"), purchase: purchase)
        self.recordedMicroseconds = max(recordedMicroseconds, before.map { $0 + 1 } ?? .min)
        kind = try row.wordIfPresent("kind")
        let version = try row.int8("version")
        self.version = version
        stored = try row.textIfPresent("facts").map { text in
            let facts = try ColumnJSON.value(PurchaseFactsJSON.self, in: text)
            return PurchaseState(
                facts: facts.facts(
                    of: purchase, asOf: try row.instant("as_of"), transactionIDs: try row.texts("transaction_ids")),
                version: version,
                refundRetractedAt: facts.refundRetractedAtMilliseconds.map(Instant.init(milliseconds:)))
        }
        state = stored
        polling = try PollingDraft(row: row)
        ownership.owner = owner
    }
}
