import Postgres
import SQL
import Subscriptions

/// A verified notification about what a settlement settles, whose details are not part of the ledger yet.
struct WaitingNotification: Sendable {
    let id: Int64
    let subject: SubscriptionRowKey
    let signedAt: Instant
    let effect: NotificationEffect
    /// Whether its price is part of the ledger.
    let isPriceTaken: Bool
    /// What its texts state; nil where they cannot be read any more.
    let evidence: Evidence?
    /// Whether it is about a one-time purchase about which a receipt outside the batch asks the Server API.
    let isServerAsked: Bool
    /// Whether the ledger knows the subscription or purchase that it is about.
    var isKnown = false
    /// Whether the ledger has what it names.
    var isFound = false
    /// Whether the ledger shows what it states.
    var isShown = false
    /// Whether the ledger shows what verifyReceipt can show of it.
    var isShownByReceipts = false
    /// Whether the ledger shows its transaction as it states it; the planned check shows what became of a renewal.
    var isTransactionShown = false
    /// Whether all its details become part of the ledger.
    var isTaken = false
    /// Whether its price does.
    var takesPrice = false

    /// Whether Apple is asked until an answer shows what it states, and none did: the Server API, or the channel that
    /// can show less. What became known by an answer that does not show it yet takes up what was stored before.
    func isAwaited(ofServer: Bool = true) -> Bool { isAsked && !(ofServer ? isShown : isShownByReceipts) }

    private var isAsked: Bool { evidence != nil && (effect == .asked || effect == .unpolled && isKnown) }

    /// Returns the same, shown by nothing that may be older than a notification before it, of some: where Apple lags, an answer
    /// from before both equals the second of two opposite changes. A refund of its date is none of that. Nil where nothing differs.
    func doubted(beside all: [WaitingNotification]) -> WaitingNotification? {
        guard isShownByReceipts, let evidence, evidence.transactions.allSatisfy({ $0.cancelledAt == nil })
        else { return nil }
        let older = all.filter { $0.subject == subject && $0.signedAt < signedAt && $0.isAsked }
        guard older.contains(where: { !$0.isShown }) else { return nil }
        var doubted = self
        doubted.isShown = false
        doubted.isShownByReceipts = older.allSatisfy(\.isShownByReceipts)
        return doubted
    }
}

extension SettlementRun {
    /// The most notifications that one settlement looks at.
    private static let waitingMax: Int32 = 1_000
    /// When the checks come that follow the wanted one while no answer shows what a notification states.
    private static let followUpDelays: [Delay] = [.minutes(1), .minutes(5), .minutes(10)]

    /// Reads the notifications that wait for what the batch's answers are about, and for what its receipts poll.
    func waitingNotifications(
        reading read: ReadNotification, in transaction: Transaction
    ) throws -> [WaitingNotification] {
        let settled = batch.filter { $0.evidence != nil && !wasSettledBefore($0) }
        guard !settled.isEmpty else { return [] }
        let receipts = Set(settled.map(\.claim.receiptID))
        let answered = Parameter.int8s(receipts.map(\.number).sorted())
        func isPolled(_ polling: PollingDraft) -> Bool { polling.storedPoller.map(receipts.contains) ?? false }
        var subjects = Set(settled.flatMap(\.subscriptionKeys))
        subjects.formUnion(settled.flatMap { contents(of: $0).purchases.map(\.subject) })
        subjects.formUnion(subscriptions.filter { isPolled($0.value.polling) }.map(\.key))
        subjects.formUnion(purchases.filter { isPolled($0.value.polling) }.map(\.key.subject))
        let rows = try transaction.query(
            Queries.readWaitingNotifications,
            SubscriptionRowKey.parameters(subjects.sorted()) + [.int4(Self.waitingMax), answered])
        return try rows.map { row in
            WaitingNotification(
                id: try row.int8("notification_id"), subject: try SubscriptionRowKey(subject: row),
                signedAt: try row.instant("signed_at"), effect: try row.word("effect"),
                isPriceTaken: try row.bool("price_taken"), evidence: read(try KeptNotification(row: row)),
                isServerAsked: try row.bool("is_server_asked"))
        }
    }

    /// Merges the details of notifications into the periods and purchases that they name: the price at once, and the
    /// share of a refund once no further answer is awaited that shows it. They decide money and reports alone.
    mutating func takeDetailsAlong() {
        for index in waiting.indices { look(for: &waiting[index]) }
        waiting = waiting.map { [waiting] notification in
            guard let doubted = notification.doubted(beside: waiting) else { return notification }
            // After the last follow-up Apple lags no more.
            return isEnding(doubted) ? notification : doubted
        }
        // What shows a newer notification shows the older ones too.
        for older in waiting.indices {
            let (subject, signedAt) = (waiting[older].subject, waiting[older].signedAt)
            let newer = waiting.filter { $0.subject == subject && $0.signedAt > signedAt }
            if newer.contains(where: \.isShown) { waiting[older].isShown = true }
            if newer.contains(where: \.isShownByReceipts) { waiting[older].isShownByReceipts = true }
        }
        for index in waiting.indices {
            let (notification, key) = (waiting[index], waiting[index].subject)
            guard let evidence = notification.evidence, notification.isFound else { continue }
            let isTaken =
                notification.isShown
                || notification.isTransactionShown && (!notification.isAwaited() || isEnding(notification))
            waiting[index].isTaken = isTaken
            waiting[index].takesPrice = evidence.transactions.contains { $0.price != nil }
            for row in evidence.transactions.map({ isTaken ? $0 : $0.withoutShare }) {
                if row.expiresAt != nil { subscriptions[key]?.addDetails(of: row) }
            }
            for purchase in evidence.purchases {
                let bought = PurchaseRowKey(appID: key.appID, environment: key.environment, purchase: purchase.key)
                for row in purchase.transactions { purchases[bought]?.addDetails(of: isTaken ? row : row.withoutShare) }
            }
        }
    }

    /// Notes whether the ledger has what a notification's texts name, and how much it shows of what they state.
    private func look(for notification: inout WaitingNotification) {
        guard let evidence = notification.evidence else { return }
        let key = notification.subject
        guard evidence.isComplete else {
            // No answer shows what cannot be read.
            notification.isKnown =
                subscriptions[key]?.state != nil
                || purchases.contains { $0.key.subject == key && $0.value.state != nil }
            return
        }
        if let purchase = evidence.purchases.first {
            let bought = PurchaseRowKey(appID: key.appID, environment: key.environment, purchase: purchase.key)
            guard let state = purchases[bought]?.state else { return }
            (notification.isKnown, notification.isFound) = (true, true)
            notification.isShownByReceipts = purchase.transactions.allSatisfy(state.shows)
            notification.isTransactionShown = notification.isShownByReceipts
            let isServerAsked =
                notification.isServerAsked || batch.contains { $0.server != nil && asks($0, about: key) }
            notification.isShown =
                notification.isShownByReceipts
                && (!isServerAsked || purchase.transactions.allSatisfy(state.showsShare))
        } else if let draft = subscriptions[key], draft.wasChecked, let state = draft.state {
            notification.isKnown = true
            var slice = evidence.slice(of: key.id)
            notification.isFound = evidence.transactions.allSatisfy { state.facts.addingDetails(of: $0) != nil }
            notification.isShown = notification.isFound && state.shows(slice)
            notification.isShownByReceipts = notification.isShown
            slice.renewals = []
            notification.isTransactionShown = notification.effect == .planned || state.shows(slice)
        }
    }

    /// Whether the batch's answers are the last ones that a notification waits for.
    private func isEnding(_ notification: WaitingNotification) -> Bool {
        let asking = batch.filter {
            $0.evidence != nil && !wasSettledBefore($0) && asks($0, about: notification.subject)
        }
        return !notification.isServerAsked && !asking.isEmpty
            && asking.allSatisfy { settlement in
                let schedule = pollers?.schedules[settlement.claim.receiptID]
                return !notification.isAwaited(ofServer: settlement.server != nil)
                    || schedule.map { $0.followUps <= 1 && !$0.isWanted } ?? false
            }
    }

    /// Whether a receipt is asked because of a notification, and no answer shows what that states.
    private func isAwaited(of settlement: Settlement) -> Bool {
        waiting.contains { $0.isAwaited(ofServer: settlement.server != nil) && asks(settlement, about: $0.subject) }
    }

    /// Whether an answer is about what a notification is about: its receipt polls that, or the Server API is asked by
    /// it about a one-time purchase, whether or not the answer names it.
    private func asks(_ settlement: Settlement, about subject: SubscriptionRowKey) -> Bool {
        let receipt = settlement.claim.receiptID
        return subscriptions[subject]?.polling.poller == receipt
            || purchases.contains { $0.key.subject == subject && $0.value.polling.poller == receipt }
            || settlement.claim.form != .receipt
                && contents(of: settlement).purchases.contains { $0.subject == subject }
    }

    /// Returns how many checks of a receipt may still bring no news after its verified answer, and when the next comes.
    func followUps(after settlement: Settlement, policy: Policy) -> (left: Int, by: Instant?) {
        let receipt = settlement.claim.receiptID
        guard let schedule = pollers?.schedules[receipt], isAwaited(of: settlement) else { return (0, nil) }
        let taken = followUpsTakenOver(by: receipt)
        if taken > schedule.followUps { return (taken, recordedAt + Self.pace(of: taken, policy)) }
        guard schedule.followUps > 0 else { return (0, nil) }
        // The check that the notification asked for is still to come.
        if schedule.isWanted { return (schedule.followUps, nil) }
        let left = schedule.followUps - 1
        guard left > 0 else { return (0, nil) }
        return (left, recordedAt + Self.pace(of: left, policy))
    }

    /// When the next check comes where so many are left.
    private static func pace(of left: Int, _ policy: Policy) -> Delay {
        max(followUpDelays[max(0, followUpDelays.count - left)].divided(by: policy.speedup), Delay(milliseconds: 250))
    }

    /// Returns with how many follow-ups a receipt goes on, because it polls from now on what notifications wait for: those of
    /// the receipt that polled it before; all, where no answer showed it before, because failed calls use up none.
    private func followUpsTakenOver(by receipt: ReceiptID) -> Int {
        let subjects = Set(waiting.filter { $0.isAwaited() }.map(\.subject))
        let polled =
            subscriptions.filter { subjects.contains($0.key) }.map(\.value.polling)
            + purchases.filter { subjects.contains($0.key.subject) }.map(\.value.polling)
        return polled.filter { $0.poller == receipt && $0.storedPoller != receipt }.map { polling in
            polling.storedPoller.map { pollers?.schedules[$0]?.followUps ?? 0 } ?? Self.followUpDelays.count + 1
        }.max() ?? 0
    }

    /// Returns when a receipt with follow-ups is asked about again after a refusal, which uses up none: at their pace, and less
    /// often the longer Apple refuses it. Nil where there are none.
    func followUp(ofRefused receipt: ReceiptID, since: Instant, policy: Policy) -> Instant? {
        guard let left = pollers?.schedules[receipt]?.followUps, left > 0 else { return nil }
        return recordedAt + max(Self.pace(of: left, policy), recordedAt - since)
    }

    /// Stores what became of the notifications. One that an answer shows, or that is asked about no more, is done.
    func writeNotifications(_ plans: [ReceiptPlan], in transaction: Transaction) throws {
        let settled = plans.filter { $0.settlement.evidence != nil }
        func effect(of notification: WaitingNotification) -> NotificationEffect? {
            guard notification.evidence != nil else { return .noFacts }
            if notification.isTaken { return .applied }
            let asking = settled.filter { asks($0.settlement, about: notification.subject) }
            let goesOn = asking.contains { $0.followUps > 0 }
            if goesOn, notification.effect == .unpolled, notification.isAwaited() { return .asked }
            let isAnswered = !asking.isEmpty && !goesOn && !notification.isServerAsked
            return notification.effect == .asked && isAnswered ? .unshown : nil
        }
        let news = waiting.map { (notification: $0, effect: effect(of: $0)) }
            .filter { $0.effect != nil || $0.notification.takesPrice && !$0.notification.isPriceTaken }
        guard !news.isEmpty else { return }
        try transaction.query(
            Queries.writeEffects, .int8s(news.map(\.notification.id)), .texts(news.map(\.effect?.rawValue)),
            .bools(news.map(\.notification.takesPrice)))
    }
}

extension TransactionRow {
    /// The same transaction without the share of the price that a refund gave back.
    var withoutShare: TransactionRow {
        var row = self
        row.revocationPercentage = nil
        return row
    }
}
