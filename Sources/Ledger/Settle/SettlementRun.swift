import Postgres
import SQL
import Subscriptions

/// One settlement in its transaction: locks and loads, folds in memory, writes.
///
/// Everyone who writes takes locks in the order schedule, receipt, subscription, purchase, customer, ownership.
struct SettlementRun {
    /// In the order of Apple's clocks.
    let batch: [Settlement]
    let worker: WorkerID
    let speedup: Int
    let receipts: [ReceiptID: RememberedReceipt]
    let claims: [ReceiptID: [OwnershipClaim]]
    /// Apple's clocks of equal answers that are not yet written to the receipts' observations.
    let confirmed: [ReceiptID: Instant]
    /// Apps with a running incident: what Apple refuses of them counts as no answer.
    let incidents: Set<Int32>
    var subscriptions: [SubscriptionRowKey: SubscriptionDraft]
    var purchases: [PurchaseRowKey: PurchaseDraft]
    /// The instant this settlement records in microseconds, read once and only after all its locks are held.
    let recordedMicroseconds: Int64

    /// The same instant in milliseconds.
    var recordedAt: Instant { Instant(microseconds: recordedMicroseconds) }

    init(_ batch: [Settlement], worker: WorkerID, speedup: Int, in transaction: Transaction) throws {
        let ids = Parameter.int8s(batch.map(\.claim.receiptID.number))
        self.worker = worker
        self.speedup = speedup
        confirmed = try transaction.query(Queries.lockSchedules, [ids]).reduce(into: [:]) { clocks, row in
            clocks[ReceiptID(try row.int8("receipt_id"))] = try row.instantIfPresent("confirmed_as_of")
        }
        let receipts = try keyed(
            transaction.query(Queries.readReceipts, [ids]), RememberedReceipt.init(row:), by: \.receiptID)
        self.receipts = receipts
        // An answer that comes after its customer was erased comes too late: it is as if nobody had asked.
        let batch = batch.filter { receipts[$0.claim.receiptID]?.isErased == false }
        self.batch = batch.sorted { ($0.asOf, $0.claim.receiptID) < ($1.asOf, $1.claim.receiptID) }
        let subscriptionRows = try Self.lockSubscriptions(of: batch, in: transaction)
        let purchaseRows = try Self.lockPurchases(of: batch, in: transaction)
        guard let clock = try transaction.query(Queries.readClock).first else {
            throw LedgerError(.mismatch, "The database gave no time.")
        }
        recordedMicroseconds = try clock.timestamptz("recorded_at")
        claims = try Self.claims(of: ids, in: transaction)
        incidents = try Self.incidents(among: batch, in: transaction)
        subscriptions = try LoadedSubscriptions(
            subscriptionRows, recordedMicroseconds: recordedMicroseconds, in: transaction
        ).drafts
        purchases = try LoadedPurchases(
            purchaseRows, recordedMicroseconds: recordedMicroseconds, in: transaction
        ).drafts
    }

    /// A settlement without answers: what was locked, loaded as it is now.
    init(locked rows: [Row], purchases purchaseRows: [Row] = [], in transaction: Transaction) throws {
        guard let clock = try transaction.query(Queries.readClock).first else {
            throw LedgerError(.mismatch, "The database gave no time.")
        }
        recordedMicroseconds = try clock.timestamptz("recorded_at")
        batch = []
        worker = WorkerID(number: 0)
        speedup = 1
        (receipts, claims, confirmed, incidents) = ([:], [:], [:], [])
        subscriptions = try LoadedSubscriptions(
            rows, recordedMicroseconds: recordedMicroseconds, in: transaction
        ).drafts
        purchases = try LoadedPurchases(
            purchaseRows, recordedMicroseconds: recordedMicroseconds, in: transaction
        ).drafts
    }

    private static func lockSubscriptions(of batch: [Settlement], in transaction: Transaction) throws -> [Row] {
        let keys = Set(batch.flatMap(\.subscriptionKeys)).sorted()
        let names: [Parameter] = [
            .int4s(keys.map(\.appID)), .texts(keys.map(\.environment.rawValue)), .texts(keys.map(\.id.text)),
        ]
        if !keys.isEmpty { try transaction.query(Queries.insertSubscriptions, names) }
        let receipts = batch.map(\.claim.receiptID.number)
        return try transaction.query(Queries.lockSubscriptions, names + [.int8s(receipts)])
    }

    private static func lockPurchases(of batch: [Settlement], in transaction: Transaction) throws -> [Row] {
        let keys = Set(batch.flatMap { $0.purchases.map(\.key) }).sorted()
        guard !keys.isEmpty else { return [] }
        let names: [Parameter] = [
            .int4s(keys.map(\.appID)), .texts(keys.map(\.environment.rawValue)),
            .texts(keys.map(\.purchase.originalTransactionID.text)), .texts(keys.map(\.purchase.productID.text)),
        ]
        try transaction.query(Queries.insertPurchases, names)
        return try transaction.query(Queries.lockPurchases, names)
    }

    /// Whether this very answer was settled before: its commit's outcome was unknown and it was sent again.
    func isRepeated(_ settlement: Settlement) -> Bool {
        receipts[settlement.claim.receiptID]?.settledToken == settlement.claim.leaseToken
    }

    private static func claims(
        of ids: Parameter, in transaction: Transaction
    ) throws -> [ReceiptID: [OwnershipClaim]] {
        let rows = try transaction.query(Queries.readUploads, [ids])
        return try rows.reduce(into: [:]) { claims, row in
            let claim = OwnershipClaim(
                customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"),
                imported: try row.bool("imported"), isNew: try row.bool("settled") == false)
            claims[ReceiptID(try row.int8("receipt_id")), default: []].append(claim)
        }
    }
}
