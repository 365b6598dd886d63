import Postgres
import SQL
import Subscriptions

/// The receipts that are asked about some subscriptions and purchases, and those that would take over; read before any
/// lock.
struct FoundPollers: Sendable {
    /// The pollers of one subscription or purchase.
    struct Entry: Hashable, Sendable {
        let poller: ReceiptID?
        /// Whether the last answer about the poller left it out.
        let pollerOmits: Bool
        /// Nil where the poller can go on and does not leave it out, and where there is no other receipt.
        let successor: PollingDraft.Successor?
        /// Whether an answer speaks of it.
        let isNamed: Bool

        /// Whether an earlier look found the same successor; a row that this transaction inserted has none.
        func hasSuccessor(of earlier: Entry?) -> Bool { successor == earlier?.successor }
    }

    private let question: Question
    private(set) var subscriptions: [Int64: Entry] = [:]
    private(set) var purchases: [Int64: Entry] = [:]

    /// The subscriptions and purchases to look for: everything that the receipts poll, and what is named by key or by
    /// row.
    struct Question {
        var polledBy: [ReceiptID] = []
        /// Receipts that cannot go on after this transaction.
        var unable: [ReceiptID] = []
        /// Receipts whose answers this transaction settles: they take over only what these answers name.
        var answered: [ReceiptID] = []
        /// Those whose answers name all purchases that they hold too.
        var whole: [ReceiptID] = []
        var subscriptionKeys: [SubscriptionRowKey] = []
        var purchaseKeys: [PurchaseRowKey] = []
        var subscriptions: [Int64] = []
        var purchases: [Int64] = []
    }

    init(_ question: Question, in transaction: Transaction) throws {
        self.question = question
        let (named, bought) = (question.subscriptionKeys, question.purchaseKeys)
        let rows = try transaction.query(
            Queries.findPollers,
            [.int8s(question.polledBy.map(\.number)), .int8s(question.unable.map(\.number))]
                + SubscriptionRowKey.parameters(named) + PurchaseRowKey.parameters(bought)
                + [
                    .int8s(question.subscriptions), .int8s(question.purchases),
                    .int8s(question.answered.map(\.number)), .int8s(question.whole.map(\.number)),
                ])
        for row in rows {
            let entry = Entry(
                poller: try row.int8IfPresent("polled_by").map { ReceiptID($0) },
                pollerOmits: try row.bool("poller_omits"),
                successor: try row.int8IfPresent("successor").map {
                    PollingDraft.Successor(receipt: ReceiptID($0), omits: try row.bool("successor_omits"))
                }, isNamed: try row.bool("named"))
            if let id = try row.int8IfPresent("subscription_id") { subscriptions[id] = entry }
            if let id = try row.int8IfPresent("purchase_id") { purchases[id] = entry }
        }
    }

    /// Looks for the contents of a batch's answers, for what its receipts poll, for what is linked to them, for the holders of
    /// their line items, and for the purchases that proofs may claim.
    init(
        of batch: [Settlement], linked: LinkedContents, holders: [Int64], provable: [Int64],
        in transaction: Transaction
    ) throws {
        var question = Question()
        question.polledBy = batch.map(\.claim.receiptID)
        question.unable = batch.filter(\.mayEndPolling).map(\.claim.receiptID)
        question.answered = batch.filter { $0.evidence != nil }.map(\.claim.receiptID)
        question.whole = batch.filter(\.speaksForAll).map(\.claim.receiptID)
        question.subscriptionKeys = Set(batch.flatMap(\.subscriptionKeys)).sorted()
        question.purchaseKeys = Set(batch.flatMap { $0.purchases.map(\.key) }).sorted()
        question.subscriptions = linked.subscriptionIDs + holders
        question.purchases = linked.purchaseIDs + provable
        try self.init(question, in: transaction)
    }

    /// Throws `PollersChanged` if another transaction made or unmade a successor before the locks. Only transactions
    /// that may need a successor look again: those in which a receipt cannot go on, or polls what no answer names or
    /// what its own last answer left out.
    func requireUnchanged(in transaction: Transaction) throws {
        let entries = Array(subscriptions.values) + purchases.values
        guard !question.unable.isEmpty || entries.contains(where: { !$0.isNamed || $0.pollerOmits })
        else { return }
        let now = try FoundPollers(question, in: transaction)
        let isSame =
            now.subscriptions.allSatisfy { $1.hasSuccessor(of: subscriptions[$0]) }
            && now.purchases.allSatisfy { $1.hasSuccessor(of: purchases[$0]) }
        if !isSame { throw PollersChanged() }
    }

    /// All pollers and successors.
    var receipts: Set<ReceiptID> {
        Set(
            [subscriptions, purchases].flatMap(\.values).flatMap { [$0.poller, $0.successor?.receipt] }.compactMap(
                \.self))
    }
}

extension Settlement {
    /// Whether another receipt may have to take over after this answer.
    fileprivate var mayEndPolling: Bool {
        switch finding {
        case .verified: false
        case .rejected(let refusal): refusal.kind != .wrongSecret
        case .indeterminate: claim.attempts >= SettlementRun.fruitlessAttemptsMax
        }
    }
}

extension SubscriptionRowKey {
    /// The keys as columns: apps, environments, ids.
    static func parameters(_ keys: [SubscriptionRowKey]) -> [Parameter] {
        [.int4s(keys.map(\.appID)), .texts(keys.map(\.environment.rawValue)), .texts(keys.map(\.id.text))]
    }
}

extension PurchaseRowKey {
    /// The keys as columns: apps, environments, ids, products.
    static func parameters(_ keys: [PurchaseRowKey]) -> [Parameter] {
        [
            .int4s(keys.map(\.appID)), .texts(keys.map(\.environment.rawValue)),
            .texts(keys.map(\.purchase.originalTransactionID.text)), .texts(keys.map(\.purchase.productID.text)),
        ]
    }
}
