import Postgres
import SQL
import Subscriptions

/// One settlement in its transaction: locks and loads, folds in memory, writes.
/// Every writer locks in the order schedule, receipt, subscription, purchase, customer, ownership, order, delivery.
///
/// Steps in other stories: `Customers/Ownership.swift`, `Entitlements/AffectedCustomers.swift`; of orders `PayOrders.swift`,
/// `Order.swift` (`OrderCustomers`), `OrderProof.swift` (`OrderReceipts`) and `SettleDeliveries.swift`;
/// `Notify/WaitingNotifications.swift`, `Operate/Incident.swift`.
struct SettlementRun {
    /// The settlements in the order of Apple's clocks.
    private(set) var batch: [Settlement]
    let apps: [Int32: App]
    /// The receipts whose schedule may change; nil where no schedule does.
    let pollers: LockedPollers?
    /// Receipts that cannot be asked about after this transaction, whatever is stored about them.
    let unable: [ReceiptID]
    let claimants: [ReceiptID: [Claimant]]
    /// The uploads of other receipts that share contents with the bare ids of transactions.
    private(set) var sharedClaimants: [ReceiptID: [Claimant]] = [:]
    /// The customers whom account tokens name.
    private(set) var orderCustomers: OrderCustomers
    /// The orders for which the batch's receipts were sent.
    let orderReceipts: OrderReceipts
    /// Apps with a running incident: Apple's refusals of their receipts count as no answer.
    let incidents: Set<Int32>
    var subscriptions: [SubscriptionRowKey: SubscriptionDraft]
    var purchases: [PurchaseRowKey: PurchaseDraft]
    /// The subscriptions that hold line items which the batch's answers show elsewhere.
    let holders: Set<Int64>
    /// Those under which the batch's answers show one line item.
    let rivals: Set<SubscriptionRowKey>
    /// The periods that move in this settlement, with the subscription that loses them.
    var moves: [(from: SubscriptionRowKey, to: SubscriptionRowKey, move: LineItemMove)] = []
    /// The notifications about what the batch's answers are about.
    var waiting: [WaitingNotification] = []
    /// What the ledger links to the receipts about which a claim or an order is to be decided.
    let linked: LinkedContents
    /// The receipts whose answers are set aside, because they may not be whole. They are asked about again soon.
    private(set) var setAside: Set<ReceiptID> = []
    /// The subscriptions whose outage allowance ended because answers leave them out.
    var endedByAbsence: [SubscriptionRowKey] = []
    /// The instant this settlement records in microseconds, read once and only after all its locks are held.
    let recordedMicroseconds: Int64

    var recordedAt: Instant { Instant(microseconds: recordedMicroseconds) }

    var receipts: [ReceiptID: RememberedReceipt] { pollers?.receipts ?? [:] }

    init(_ batch: [Settlement], reading read: ReadNotification, in transaction: Transaction) throws {
        let ids = batch.map(\.claim.receiptID)
        apps = Dictionary(batch.map { ($0.claim.app.id, $0.claim.app) }) { first, _ in first }
        unable = []
        // Find what else is concerned: what the ledger links to the receipts, and where their line items are.
        linked = try LinkedContents(of: batch.map(\.claim), in: transaction)
        let items = Self.lineItems(in: batch)
        let holders = try Self.holders(of: items, in: transaction)
        let provable = try ProvablePurchases(of: batch, in: transaction)
        let others = provable.purchases + (try Self.skippedTwins(of: batch, in: transaction))
        let found = try FoundPollers(of: batch, linked: linked, holders: holders, provable: others, in: transaction)
        // Lock: schedule rows and receipts, subscriptions, purchases.
        let pollers = try LockedPollers(ids, and: found, in: transaction)
        try pollers.foldClocks(in: transaction)
        self.pollers = pollers
        // An outdated answer is treated as if Apple had not been asked.
        let batch = batch.filter { !pollers.isOutdated($0) }
        self.batch = batch.sorted { ($0.asOf, $0.claim.receiptID) < ($1.asOf, $1.claim.receiptID) }
        let subscriptionRows = try Self.insertAndLockSubscriptions(
            of: batch, others: linked.subscriptionIDs + holders, in: transaction)
        let purchaseRows = try Self.insertAndLockPurchases(
            of: batch, others: linked.purchaseIDs + others, in: transaction)
        try pollers.found.requireUnchanged(in: transaction)
        // The clock, then load: nothing that was read before a lock is used.
        recordedMicroseconds = try Self.clock(in: transaction)
        claimants = try Self.claimants(
            of: .int8s(ids.map(\.number)),
            pointers: Set(batch.filter { $0.vouching == .pointer }.map(\.claim.receiptID)),
            in: transaction)
        orderCustomers = .none
        orderReceipts = try OrderReceipts(
            of: batch, provable: provable, purchases: purchaseRows, subscriptions: subscriptionRows, in: transaction)
        incidents = try Self.incidents(among: batch, in: transaction)
        self.holders = Set(holders)
        rivals = LineItem.rivals(among: items)
        (subscriptions, purchases) = ([:], [:])
        try load(subscriptionRows, purchaseRows, in: transaction)
        orderCustomers = try OrderCustomers(of: batch, subscriptions.values, purchases.values, in: transaction)
        self.batch = self.batch.map { orderCustomers.withoutErased($0) }
        sharedClaimants = try sharedClaimants(in: transaction)
        // Set aside what may not be whole.
        setAsideWhatIsDoubtful()
        waiting = try waitingNotifications(reading: read, in: transaction)
    }

    /// Replaces an answer by none where its statuses name a transaction that neither its history nor the ledger holds,
    /// or where it has no date and disagrees with a fact that is dated between its claim and its arrival.
    private mutating func setAsideWhatIsDoubtful() {
        batch = batch.map { settlement in
            guard !wasSettledBefore(settlement), let reason = doubt(about: settlement) else { return settlement }
            setAside.insert(settlement.claim.receiptID)
            return settlement.setAside(because: reason)
        }
    }

    private func doubt(about settlement: Settlement) -> String? {
        if !isWhole(settlement) {
            return "Apple's statuses name a transaction that its history does not show yet; it is asked again."
        }
        if isAmbiguous(settlement) {
            return "Apple's answer has no date, and disagrees with one that came meanwhile; it is asked again."
        }
        return nil
    }

    /// Whether an undated answer would change something that was dated since its claim, if it spoke for its arrival.
    private func isAmbiguous(_ settlement: Settlement) -> Bool {
        guard let evidence = settlement.evidence, let arrivedAt = evidence.arrivedAt else { return false }
        func isDatedMeanwhile(_ clocks: Set<Instant>) -> Bool {
            clocks.contains { $0 > evidence.asOf && $0 <= arrivedAt }
        }
        let late = evidence.given(at: arrivedAt)
        return settlement.subscriptionKeys.contains { key in
            guard let known = subscriptions[key]?.stored?.facts, isDatedMeanwhile(known.clocks) else { return false }
            return !known.adding(late.slice(of: key.id)).sameMeaning(as: known)
        }
            || late.purchases.contains { purchase in
                let key = PurchaseRowKey(
                    appID: settlement.claim.app.id, environment: evidence.environment, purchase: purchase.key)
                guard let known = purchases[key]?.stored, isDatedMeanwhile(known.facts.clocks) else { return false }
                return reconcilePurchase(known, with: purchase)?.changed ?? false
            }
    }

    /// Whether everything that the statuses name is in the history or in the ledger: by its id, or by its line item,
    /// because a period has several ids. What cannot be read may name it.
    private func isWhole(_ settlement: Settlement) -> Bool {
        guard let evidence = settlement.evidence, evidence.isComplete, settlement.server?.goesOn != true else {
            return true
        }
        let history = evidence.transactions.filter { $0.source != .statuses }
        let (ids, items) = (Set(history.map(\.transactionID)), Set(history.compactMap(\.webOrderLineItemID)))
        return evidence.transactions.allSatisfy { row in
            if row.source != .statuses || ids.contains(row.transactionID) { return true }
            if let item = row.webOrderLineItemID, items.contains(item) { return true }
            let key = SubscriptionRowKey(
                appID: settlement.claim.app.id, environment: evidence.environment, id: row.originalTransactionID)
            return subscriptions[key]?.stored?.facts.periods.contains {
                $0.transactionIDs.contains(row.transactionID)
                    || row.webOrderLineItemID != nil && $0.webOrderLineItemID == row.webOrderLineItemID
            } ?? false
        }
    }

    /// The subscriptions and purchases over which the claims and orders of a receipt are decided: those in the answer,
    /// and those that the ledger links to the receipt.
    func contents(of settlement: Settlement) -> (subscriptions: [SubscriptionRowKey], purchases: [PurchaseRowKey]) {
        let linked = linked.contents[settlement.claim.receiptID]
        let (keys, bought) = (settlement.subscriptionKeys, settlement.purchases.map(\.key))
        return (
            keys + (linked?.subscriptions ?? []).filter { !keys.contains($0) },
            bought + (linked?.purchases ?? []).filter { !bought.contains($0) }
        )
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
        (claimants, incidents, linked, holders, rivals) = ([:], [], .none, [], [])
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
            rows, of: apps, recordedMicroseconds: recordedMicroseconds, in: transaction
        ).drafts
        purchases = try LoadedPurchases(
            purchaseRows, recordedMicroseconds: recordedMicroseconds, in: transaction
        ).drafts
    }

    private static func insertAndLockSubscriptions(
        of batch: [Settlement], others: [Int64], in transaction: Transaction
    ) throws -> [Row] {
        let named = Set(batch.flatMap(\.subscriptionKeys)).sorted()
        let keys = SubscriptionRowKey.parameters(named)
        if !named.isEmpty { try transaction.query(Queries.insertSubscriptions, keys) }
        let receipts = batch.map(\.claim.receiptID.number)
        return try transaction.query(Queries.lockSubscriptions, keys + [.int8s(receipts), .int8s(others)])
    }

    private static func lineItems(in batch: [Settlement]) -> Set<LineItem> {
        batch.reduce(into: []) { items, settlement in
            guard let evidence = settlement.evidence else { return }
            for row in evidence.movableRows {
                guard let id = row.chargeKey else { continue }
                let key = SubscriptionRowKey(
                    appID: settlement.claim.app.id, environment: evidence.environment, id: row.originalTransactionID)
                items.insert(LineItem(key: key, id: id, startsAt: row.purchasedAt))
            }
        }
    }

    /// Returns the subscriptions that hold line items of the answers under another original transaction id. Waits for
    /// other settlements that store the same new line items, so that of two answers which show one under two ids the
    /// second sees what the first stored. The newest of each subscription are enough for that.
    private static func holders(of items: Set<LineItem>, in transaction: Transaction) throws -> [Int64] {
        guard !items.isEmpty else { return [] }
        let newest = Dictionary(grouping: items, by: \.key).values.flatMap { rows in
            rows.sorted { ($1.startsAt, $1.id) < ($0.startsAt, $0.id) }.prefix(lockedItemsMax)
        }
        try transaction.query(Queries.lockLineItems, LineItem.parameters(newest))
        return try transaction.query(Queries.findLineItemHolders, LineItem.parameters(Array(items)))
            .map { try $0.int8("subscription_id") }
    }

    /// The most new line items of a subscription that one settlement locks: an import brings whole histories.
    private static let lockedItemsMax = 2

    /// Returns the purchases that were skipped as possible duplicates of those whose account tokens the answers state.
    private static func skippedTwins(of batch: [Settlement], in transaction: Transaction) throws -> [Int64] {
        let carrying = batch.flatMap(\.purchases).filter { _, evidence in
            evidence.transactions.contains { $0.appAccountToken != nil }
        }
        guard !carrying.isEmpty else { return [] }
        return try transaction.query(
            Queries.findSkippedTwins, PurchaseRowKey.parameters(Set(carrying.map(\.key)).sorted())
        ).map { try $0.int8("purchase_id") }
    }

    private struct LineItem: Hashable {
        let key: SubscriptionRowKey
        let id: WebOrderLineItemID
        let startsAt: Instant

        static func parameters(_ items: [LineItem]) -> [Parameter] {
            [
                .int4s(items.map(\.key.appID)), .texts(items.map(\.key.environment.rawValue)),
                .texts(items.map(\.id.text)), .texts(items.map(\.key.id.text)),
            ]
        }

        /// Returns the subscriptions that share a line item with another one.
        static func rivals(among items: Set<LineItem>) -> Set<SubscriptionRowKey> {
            var keys: [WebOrderLineItemID: Set<SubscriptionRowKey>] = [:]
            for item in items { keys[item.id, default: []].insert(item.key) }
            return keys.values.filter { $0.count > 1 }.reduce(into: []) { $0.formUnion($1) }
        }
    }

    private static func insertAndLockPurchases(
        of batch: [Settlement], others: [Int64], in transaction: Transaction
    ) throws -> [Row] {
        let keys = PurchaseRowKey.parameters(Set(batch.flatMap { $0.purchases.map(\.key) }).sorted())
        if batch.contains(where: { !$0.purchases.isEmpty }) { try transaction.query(Queries.insertPurchases, keys) }
        let receipts = batch.map(\.claim.receiptID.number)
        return try transaction.query(Queries.lockPurchases, keys + [.int8s(receipts), .int8s(others)])
    }

    /// Whether this same answer was settled before: the outcome of its commit was unknown, so it was sent again.
    func wasSettledBefore(_ settlement: Settlement) -> Bool {
        receipts[settlement.claim.receiptID]?.settledToken == settlement.claim.leaseToken
    }

    private static func claimants(
        of ids: Parameter, pointers: Set<ReceiptID>, in transaction: Transaction
    ) throws -> [ReceiptID: [Claimant]] {
        try transaction.query(Queries.readUploads, ids).reduce(into: [:]) { claimants, row in
            let receipt = ReceiptID(try row.int8("receipt_id"))
            claimants[receipt, default: []].append(
                try Claimant(
                    row: row, isNew: row.bool("settled") == false, isPointer: pointers.contains(receipt)))
        }
    }
}

/// What the ledger links to receipts about which a claim or an order is to be decided: an answer need not repeat it.
struct LinkedContents: Sendable {
    private(set) var contents: [ReceiptID: (subscriptions: [SubscriptionRowKey], purchases: [PurchaseRowKey])] = [:]
    private(set) var subscriptionIDs: [Int64] = []
    private(set) var purchaseIDs: [Int64] = []

    static let none = LinkedContents()

    private init() {}

    /// Reads what is linked to the receipts of claims: nothing to those that were never verified.
    init(of claims: [Claim], in transaction: Transaction) throws {
        let receipts = claims.filter { $0.environment != nil }.map(\.receiptID.number)
        guard !receipts.isEmpty else { return }
        for row in try transaction.query(Queries.readLinked, .int8s(receipts)) {
            let receipt = ReceiptID(try row.int8("receipt_id"))
            let subject = try SubscriptionRowKey(subject: row)
            if let id = try row.int8IfPresent("subscription_id") {
                subscriptionIDs.append(id)
                contents[receipt, default: ([], [])].subscriptions.append(subject)
            }
            if let id = try row.int8IfPresent("purchase_id"), let product = try row.textIfPresent("product_id") {
                purchaseIDs.append(id)
                contents[receipt, default: ([], [])].purchases.append(
                    PurchaseRowKey(
                        appID: subject.appID, environment: subject.environment,
                        purchase: PurchaseKey(originalTransactionID: subject.id, productID: ProductID(product))))
            }
        }
    }
}

/// The stored facts of a receipt.
struct RememberedReceipt: Sendable {
    /// Consecutive refusals, and when the first came.
    let rejections: Int
    let rejectedSince: Instant?
    /// Consecutive verified answers without contents.
    let emptyAnswers: Int
    let observationID: Int64?
    /// Microseconds; with the id it identifies the observation's row.
    let observationRecordedAt: Int64?
    /// The clock of the first answer of that observation.
    let observedFrom: Instant?
    let meaning: [UInt8]?
    let verifiedAt: Instant?
    /// When the device made it, as far as Apple reported it.
    let createdAt: Instant?
    /// When it was first sent.
    let receivedAt: Instant
    /// Whether its last answer was a refusal, which may have been forgiven.
    let wasRefused: Bool
    /// The token of the lease under which the last answer about it was settled.
    let settledToken: Int64
    /// Whether its customer was erased: no later answer about it is stored.
    let isErased: Bool
    let sender: ReceiptSender

    init(row: Row) throws {
        rejections = Int(try row.int2("rejections"))
        rejectedSince = try row.instantIfPresent("rejected_since")
        emptyAnswers = Int(try row.int2("equal_empty_answers"))
        observationID = try row.int8IfPresent("observation_id")
        observationRecordedAt = try row.timestamptzIfPresent("observed_at")
        observedFrom = try row.instantIfPresent("observed_from")
        meaning = try row.byteaIfPresent("meaning")
        verifiedAt = try row.instantIfPresent("verified_at")
        createdAt = try row.instantIfPresent("receipt_created_at")
        receivedAt = try row.instant("received_at")
        wasRefused = try row.bool("refused")
        settledToken = try row.int8("settled_token")
        isErased = try row.bool("erased")
        sender = ReceiptSender(rawValue: try row.int2("sender")) ?? .none
    }
}

/// Who sent a receipt, and how far the sender is believed: of receipts that hold the same, the greater's is asked.
enum ReceiptSender: Int16, Comparable, Sendable {
    /// No customer: a notification named its transaction.
    case none
    /// A customer who only points at the contents.
    case pointing
    /// A customer, and Apple vouched for it.
    case vouched

    static func < (left: ReceiptSender, right: ReceiptSender) -> Bool { left.rawValue < right.rawValue }
}
