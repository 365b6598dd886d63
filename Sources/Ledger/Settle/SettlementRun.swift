import Postgres
import SQL
import Subscriptions

/// One settlement in its transaction: locks and loads, folds in memory, writes.
///
/// Every writer takes locks in the order schedule, receipt, subscription, purchase, customer, ownership, order,
/// delivery.
struct SettlementRun {
    /// The settlements in the order of Apple's clocks.
    private(set) var batch: [Settlement]
    let apps: [Int32: App]
    /// The receipts whose schedule may change; nil where no schedule does.
    let pollers: LockedPollers?
    /// Receipts that cannot be asked about after this transaction, whatever is stored about them.
    let unable: [ReceiptID]
    let ownershipClaims: [ReceiptID: [OwnershipClaim]]
    /// The customers whom the account tokens of orders name.
    let orderCustomers: OrderCustomers
    /// The orders for which the batch's receipts were sent.
    let orderReceipts: OrderReceipts
    /// Apps with a running incident: Apple's refusals of their receipts count as no answer.
    let incidents: Set<Int32>
    var subscriptions: [SubscriptionRowKey: SubscriptionDraft]
    var purchases: [PurchaseRowKey: PurchaseDraft]
    /// The subscriptions that hold line items which the batch's answers show elsewhere.
    let holders: Set<Int64>
    /// The periods that move in this settlement, with the subscription that loses them.
    var moves: [(from: SubscriptionRowKey, to: SubscriptionRowKey, move: LineItemMove)] = []
    /// The receipts whose answers were not whole and do not join what is known: a whole answer comes first.
    private(set) var awaitingWhole: Set<ReceiptID> = []
    /// The subscriptions whose outage allowance ended because answers leave them out.
    var endedByAbsence: [SubscriptionRowKey] = []
    /// The instant this settlement records in microseconds, read once and only after all its locks are held.
    let recordedMicroseconds: Int64

    /// The same instant in milliseconds.
    var recordedAt: Instant { Instant(microseconds: recordedMicroseconds) }

    /// The stored facts of the locked receipts.
    var receipts: [ReceiptID: RememberedReceipt] { pollers?.receipts ?? [:] }

    init(_ batch: [Settlement], in transaction: Transaction) throws {
        let ids = batch.map(\.claim.receiptID)
        apps = Dictionary(batch.map { ($0.claim.app.id, $0.claim.app) }) { first, _ in first }
        unable = []
        let holders = try Self.holders(ofLineItemsIn: batch, in: transaction)
        let provable = try ProvablePurchases(of: batch, in: transaction)
        let found = try FoundPollers(of: batch, holders: holders, provable: provable.purchases, in: transaction)
        let pollers = try LockedPollers(ids, and: found, in: transaction)
        try pollers.foldClocks(in: transaction)
        self.pollers = pollers
        // An outdated answer is treated as if Apple had not been asked.
        let batch = batch.filter { !pollers.isOutdated($0) }
        self.batch = batch.sorted { ($0.asOf, $0.claim.receiptID) < ($1.asOf, $1.claim.receiptID) }
        let subscriptionRows = try Self.insertAndLockSubscriptions(
            of: batch, holders: holders, in: transaction)
        let purchaseRows = try Self.insertAndLockPurchases(of: batch, and: provable.purchases, in: transaction)
        try pollers.found.requireUnchanged(in: transaction)
        recordedMicroseconds = try Self.clock(in: transaction)
        ownershipClaims = try Self.ownershipClaims(
            of: .int8s(ids.map(\.number)),
            pointers: Set(batch.filter { $0.vouching == .pointer }.map(\.claim.receiptID)),
            in: transaction)
        orderCustomers = try OrderCustomers(of: batch, in: transaction)
        orderReceipts = try OrderReceipts(
            of: batch, provable: provable, purchases: purchaseRows, subscriptions: subscriptionRows, in: transaction)
        incidents = try Self.incidents(among: batch, in: transaction)
        self.holders = Set(holders)
        (subscriptions, purchases) = ([:], [:])
        try load(subscriptionRows, purchaseRows, in: transaction)
        setAsideWhatDoesNotJoin()
    }

    /// Replaces each answer that is not whole and does not join what is known by none: a period between may be missing. The
    /// next check reads everything.
    private mutating func setAsideWhatDoesNotJoin() {
        batch = batch.map { settlement in
            if joins(settlement) || isRepeated(settlement) { return settlement }
            awaitingWhole.insert(settlement.claim.receiptID)
            return settlement.setAside
        }
    }

    private func joins(_ settlement: Settlement) -> Bool {
        guard let evidence = settlement.evidence else { return true }
        guard evidence.coverage != .whole else { return !isSilentAboutSubscriptions(settlement) }
        let policy = settlement.claim.app.policy(for: evidence.environment)
        return settlement.subscriptionKeys.allSatisfy { key in
            subscriptions[key]?.accepts(evidence.slice(of: key.id), policy: policy) ?? false
        }
    }

    /// Whether the statuses, which name all subscriptions of a customer, name none although the receipt polls one.
    private func isSilentAboutSubscriptions(_ settlement: Settlement) -> Bool {
        guard !settlement.speaksForAll, settlement.subscriptionKeys.isEmpty else { return false }
        return subscriptions.values.contains { $0.polling.storedPoller == settlement.claim.receiptID }
    }

    /// Starts a settlement without answers: loads the locked rows as they are now.
    init(
        locked rows: [Row], purchases purchaseRows: [Row] = [], pollers: LockedPollers? = nil,
        unable: [ReceiptID] = [], apps: [Int32: App] = [:], orderCustomers: OrderCustomers = .none,
        in transaction: Transaction
    ) throws {
        recordedMicroseconds = try Self.clock(in: transaction)
        batch = []
        (self.pollers, self.unable, self.apps) = (pollers, unable, apps)
        (ownershipClaims, incidents, holders) = ([:], [], [])
        (self.orderCustomers, orderReceipts) = (orderCustomers, .none)
        (subscriptions, purchases) = ([:], [:])
        try load(rows, purchaseRows, in: transaction)
    }

    private static func clock(in transaction: Transaction) throws -> Int64 {
        guard let clock = try transaction.query(Queries.readClock).first else {
            throw LedgerError(.mismatch, "The database gave no time.")
        }
        return try clock.timestamptz("recorded_at")
    }

    private mutating func load(_ rows: [Row], _ purchaseRows: [Row], in transaction: Transaction) throws {
        subscriptions = try LoadedSubscriptions(
            rows, recordedMicroseconds: recordedMicroseconds, in: transaction
        ).drafts
        purchases = try LoadedPurchases(
            purchaseRows, recordedMicroseconds: recordedMicroseconds, in: transaction
        ).drafts
    }

    private static func insertAndLockSubscriptions(
        of batch: [Settlement], holders: [Int64], in transaction: Transaction
    ) throws -> [Row] {
        let keys = SubscriptionRowKey.parameters(Set(batch.flatMap(\.subscriptionKeys)).sorted())
        let whole = Set(batch.filter { $0.evidence?.coverage == .whole }.flatMap(\.subscriptionKeys)).sorted()
        if !whole.isEmpty {
            try transaction.query(Queries.insertSubscriptions, SubscriptionRowKey.parameters(whole))
        }
        let receipts = batch.map(\.claim.receiptID.number)
        return try transaction.query(Queries.lockSubscriptions, keys + [.int8s(receipts), .int8s(holders)])
    }

    /// Returns the subscriptions that hold line items of the answers under another original transaction id.
    private static func holders(ofLineItemsIn batch: [Settlement], in transaction: Transaction) throws -> [Int64] {
        let items = Set(
            batch.flatMap { settlement in
                (settlement.evidence?.movableRows ?? []).map { row in
                    LineItem(
                        key: SubscriptionRowKey(
                            appID: settlement.claim.app.id,
                            environment: settlement.evidence?.environment ?? .production,
                            id: row.originalTransactionID), id: row.webOrderLineItemID)
                }
            })
        guard !items.isEmpty else { return [] }
        let all = Array(items)
        return try transaction.query(
            Queries.findLineItemHolders,
            [
                .int4s(all.map(\.key.appID)), .texts(all.map(\.key.environment.rawValue)),
                .texts(all.compactMap(\.id?.text)), .texts(all.map(\.key.id.text)),
            ]
        ).map { try $0.int8("subscription_id") }
    }

    private struct LineItem: Hashable {
        let key: SubscriptionRowKey
        let id: WebOrderLineItemID?
    }

    private static func insertAndLockPurchases(
        of batch: [Settlement], and provable: [Int64], in transaction: Transaction
    ) throws -> [Row] {
        let keys = PurchaseRowKey.parameters(Set(batch.flatMap { $0.purchases.map(\.key) }).sorted())
        if batch.contains(where: { !$0.purchases.isEmpty }) {
            try transaction.query(Queries.insertPurchases, keys)
        }
        let receipts = batch.map(\.claim.receiptID.number)
        return try transaction.query(Queries.lockPurchases, keys + [.int8s(receipts), .int8s(provable)])
    }

    /// Whether this same answer was settled before: the outcome of its commit was unknown, so it was sent again.
    func isRepeated(_ settlement: Settlement) -> Bool {
        receipts[settlement.claim.receiptID]?.settledToken == settlement.claim.leaseToken
    }

    private static func ownershipClaims(
        of ids: Parameter, pointers: Set<ReceiptID>, in transaction: Transaction
    ) throws -> [ReceiptID: [OwnershipClaim]] {
        let rows = try transaction.query(Queries.readUploads, [ids])
        return try rows.reduce(into: [:]) { ownershipClaims, row in
            let receipt = ReceiptID(try row.int8("receipt_id"))
            let isPointer = pointers.contains(receipt)
            let claim = OwnershipClaim(
                customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"),
                imported: try row.bool("imported") || isPointer, isNew: try row.bool("settled") == false,
                isPointer: isPointer)
            ownershipClaims[receipt, default: []].append(claim)
        }
    }
}
