import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// The delay before the check that a notification asks for, in seconds: Apple's own servers need a moment to agree.
    private static let checkSeconds = 5.0
    /// The shortest and the longest rest of a notification that waits for a whole answer, in seconds.
    private static let (restSecondsMin, restSecondsMax) = (1.0, 86_400.0)
    /// How often a notification that does not join what is known is tried.
    private static let triesMax = 12

    /// Locks and loads what notifications are about, with the receipts that are asked about it.
    init(applying notifications: [DueNotification], apps: [Int32: App], in transaction: Transaction) throws {
        let keys = Set(notifications.flatMap(\.subscriptionKeys)).sorted()
        let bought = Set(notifications.flatMap { $0.purchases.map(\.key) }).sorted()
        var question = FoundPollers.Question()
        (question.subscriptionKeys, question.purchaseKeys) = (keys, bought)
        let found = try FoundPollers(question, in: transaction)
        let pollers = try LockedPollers([], and: found, in: transaction)
        try pollers.foldClocks(in: transaction)
        if !bought.isEmpty { try transaction.query(Queries.insertPurchases, PurchaseRowKey.parameters(bought)) }
        let introduced = Set(notifications.filter(\.introduces).flatMap(\.subscriptionKeys)).sorted()
        if !introduced.isEmpty {
            try transaction.query(Queries.insertSubscriptions, SubscriptionRowKey.parameters(introduced))
        }
        let subscriptions = try transaction.query(
            Queries.lockSubscriptions, SubscriptionRowKey.parameters(keys) + [.int8s([]), .int8s([])])
        let purchases = try transaction.query(
            Queries.lockPurchases, PurchaseRowKey.parameters(bought) + [.int8s([]), .int8s([])])
        try found.requireUnchanged(in: transaction)
        try self.init(
            locked: subscriptions, purchases: purchases, pollers: pollers, apps: apps,
            orderCustomers: try OrderCustomers(naming: notifications, in: transaction), in: transaction)
    }

    /// Folds the notifications in the order of Apple's clocks; returns what became of each.
    mutating func fold(_ due: [DueNotification], hastenedBy divisor: Double) -> [Int64: NotificationOutcome] {
        var outcomes: [Int64: NotificationOutcome] = [:]
        for notification in due.sorted(by: { ($0.evidence.asOf, $0.id) < ($1.evidence.asOf, $1.id) }) {
            let policy = notification.app.policy(for: notification.evidence.environment)
            let joined = notification.subscriptionKeys.map {
                fold(notification, about: $0, policy: policy, hastenedBy: divisor)
            }
            for (key, purchase) in notification.purchases { fold(purchase, about: key) }
            outcomes[notification.id] =
                joined.allSatisfy { $0 } ? .applied : notification.attempts < Self.triesMax ? .awaitsWhole : .unjoined
        }
        return outcomes
    }

    /// Folds a notification into a subscription; returns false where it has to wait for a whole answer.
    private mutating func fold(
        _ notification: DueNotification, about key: SubscriptionRowKey, policy: Policy, hastenedBy divisor: Double
    ) -> Bool {
        let slice = notification.evidence.slice(of: key.id)
        let isFirst = subscriptions[key]?.state == nil && notification.introduces
        let soon = recordedAt + Delay(milliseconds: Int64(1_000 * Self.checkSeconds / divisor))
        guard isFirst || subscriptions[key]?.accepts(slice, policy: policy) ?? false else {
            subscriptions[key]?.polling.review(by: soon)
            return false
        }
        subscriptions[key]?.apply(slice, policy: policy)
        assignOwner(of: key)
        // It shows a part only: what it leaves open, an answer shows.
        if subscriptions[key]?.state?.asOf != slice.asOf { subscriptions[key]?.polling.review(by: soon) }
        return true
    }

    private mutating func fold(_ purchase: PurchaseEvidence, about key: PurchaseRowKey) {
        purchases[key]?.apply(purchase)
        guard purchases[key]?.ownership.current == nil else { return }
        let customer = orderCustomers.claim(of: purchases[key]?.state?.facts.appAccountToken?.value, appID: key.appID)
        let poller = purchases[key]?.polling.poller ?? ReceiptID(0)
        purchases[key]?.resolveOwnership(among: [], of: poller, ownedBy: nil, orderedBy: customer, policy: .keep)
    }

    /// Gives a subscription without an owner to the customer whom its account token names.
    private mutating func assignOwner(of key: SubscriptionRowKey) {
        guard subscriptions[key]?.ownership.current == nil else { return }
        let customer = orderCustomers.claim(of: subscriptions[key]?.state?.facts.appAccountToken, appID: key.appID)
        let poller = subscriptions[key]?.polling.poller ?? ReceiptID(0)
        subscriptions[key]?.resolveOwnership(among: [], of: poller, ownedBy: nil, orderedBy: customer, policy: .keep)
    }

    /// Writes what the notifications changed; returns the number of events.
    mutating func writeFolded(in transaction: Transaction) throws -> Int {
        try planPolling()
        let affected = try lockAffectedCustomers(in: transaction)
        try writeDrafts(in: transaction)
        try writePolling(in: transaction)
        try postponeReported(in: transaction)
        try affected.store(in: transaction)
        try payOrders(in: transaction)
        try storeTurns(in: transaction)
        return subscriptions.values.reduce(0) { $0 + $1.events.count }
            + purchases.values.reduce(0) { $0 + $1.events.count }
    }

    /// Returns what the Server API has to be asked about first: transactions of subscriptions that are not known.
    func unknown(among notifications: [DueNotification], _ outcomes: [Int64: NotificationOutcome])
        -> [UnknownTransaction]
    {
        notifications.compactMap { notification in
            guard outcomes[notification.id] == .awaitsWhole, notification.attempts == 0,
                notification.app.serverKey != nil,
                notification.subscriptionKeys.contains(where: { subscriptions[$0]?.state == nil }),
                let transaction = notification.evidence.transactions.first
            else { return nil }
            return UnknownTransaction(bundleID: notification.app.bundleID, id: transaction.transactionID)
        }
    }

    /// Has the next checks of the receipts behind waiting notifications read everything that Apple knows.
    func requireWhole(
        for notifications: [DueNotification], _ outcomes: [Int64: NotificationOutcome], in transaction: Transaction
    ) throws {
        let waiting = notifications.filter { outcomes[$0.id] == .awaitsWhole }.flatMap(\.subscriptionKeys)
        let receipts = Set(waiting.compactMap { subscriptions[$0]?.polling.poller?.number })
        guard !receipts.isEmpty else { return }
        try transaction.query(Queries.requireWhole, [.int8s(receipts.sorted())])
    }

    /// Stores what became of the notifications.
    func write(
        _ outcomes: [Int64: NotificationOutcome], of notifications: [DueNotification], hastenedBy divisor: Double,
        in transaction: Transaction
    ) throws {
        let attempts = Dictionary(notifications.map { ($0.id, $0.attempts) }) { first, _ in first }
        let written = outcomes.sorted { $0.key < $1.key }
        let again = written.map { id, outcome -> Instant? in
            guard outcome == .awaitsWhole else { return nil }
            let seconds = min(Self.restSecondsMax, 2 * Self.checkSeconds * Double(1 << min(attempts[id] ?? 0, 20)))
            return recordedAt + Delay(milliseconds: Int64(1_000 * max(Self.restSecondsMin, seconds / divisor)))
        }
        try transaction.query(
            Queries.writeAppliedNotifications,
            [.int8s(written.map(\.key)), .texts(written.map(\.value.rawValue)), .instants(again)])
    }
}

extension DueNotification {
    /// How often it waits for a whole answer about an unknown subscription: some ten minutes, in which the device's receipt
    /// may come.
    private static let introducedAfter = 6

    /// Whether it makes an unknown subscription known: it holds a transaction, the Server API cannot be asked for the
    /// whole, and either the subscription has no past or no answer about it came.
    var introduces: Bool {
        guard !evidence.transactions.isEmpty, app.serverKey == nil else { return false }
        let begins = evidence.transactions.allSatisfy { $0.originalPurchasedAt == $0.purchasedAt }
        return begins || attempts >= Self.introducedAfter
    }
}
