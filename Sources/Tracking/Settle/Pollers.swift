import Postgres
import SQL
import Subscriptions

/// The receipts that poll some subscriptions and purchases, and those that would take over; read before any lock.
struct FoundPollers: Sendable {
    struct Entry: Hashable, Sendable {
        let poller: ReceiptID?
        /// Whether the last answer about the poller left it out.
        let pollerOmits: Bool
        /// Nil where the poller can go on and does not leave it out, and where there is no other receipt.
        let successor: PollingDraft.Successor?
        /// Whether an answer speaks of it.
        let isNamed: Bool
    }

    private let question: Question
    private(set) var subscriptions: [Int64: Entry] = [:]
    private(set) var purchases: [Int64: Entry] = [:]

    /// The subscriptions and purchases to look for: what the receipts poll, and what is named by key or by row.
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

    /// Looks for what a batch's answers name, what its receipts poll or link to, `holders`, and `provable` purchases.
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

    /// Throws `PollersChanged` if a successor came or went before the locks. Only transactions that may need one look
    /// again: where a receipt cannot go on, or polls what no answer names or its own last one left out.
    func requireUnchanged(in transaction: Transaction) throws {
        guard !question.unable.isEmpty || entries.contains(where: { !$0.isNamed || $0.pollerOmits }) else { return }
        let now = try FoundPollers(question, in: transaction)
        let isSame =
            now.subscriptions.allSatisfy { $1.successor == subscriptions[$0]?.successor }
            && now.purchases.allSatisfy { $1.successor == purchases[$0]?.successor }
        if !isSame { throw PollersChanged() }
    }

    var receipts: Set<ReceiptID> { Set(entries.flatMap { [$0.poller, $0.successor?.receipt] }.compactMap(\.self)) }

    private var entries: [Entry] { Array(subscriptions.values) + purchases.values }
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

/// The receipts whose schedule a transaction may change: its own, the pollers of what it touches, and their successors.
/// Their schedule rows are locked first, then they, by id and before any subscription: so transactions do not deadlock.
struct LockedPollers: Sendable {
    /// A schedule row as it was when locked.
    struct Schedule: Sendable {
        /// Apple's clock of the newest equal answer; nil where the next answer is read in full anyway.
        let confirmedAsOf: Instant?
        /// How many checks may still bring no news of what a notification states.
        let followUps: Int
        /// Whether a check is wanted after the one under way.
        let isWanted: Bool
        let lane: Lane
        /// Ended claims since the last answer that counts; a claim that a worker still holds is not among them.
        let endedAttempts: Int
        let leaseToken: Int64
        let isLeased: Bool
    }

    let found: FoundPollers
    let receipts: [ReceiptID: RememberedReceipt]
    let schedules: [ReceiptID: Schedule]

    init(_ own: [ReceiptID], and found: FoundPollers, in transaction: Transaction) throws {
        self.found = found
        let ids = Parameter.int8s(found.receipts.union(own).map(\.number).sorted())
        schedules = try transaction.query(Queries.lockSchedules, ids).reduce(into: [:]) { schedules, row in
            schedules[ReceiptID(try row.int8("receipt_id"))] = Schedule(
                confirmedAsOf: try row.instantIfPresent("confirmed_as_of"),
                followUps: Int(try row.int2("follow_ups")), isWanted: try row.bool("wanted"),
                lane: try row.word("lane"),
                endedAttempts: Int(try row.int4("ended_attempts")), leaseToken: try row.int8("lease_token"),
                isLeased: try row.bool("leased"))
        }
        receipts = try transaction.query(Queries.readReceipts, ids).reduce(into: [:]) { receipts, row in
            receipts[ReceiptID(try row.int8("receipt_id"))] = try RememberedReceipt(row: row)
        }
    }

    /// Moves the clocks of equal answers from the schedule to what is polled and its observations: no change loses one.
    func foldClocks(in transaction: Transaction) throws {
        let confirmed = schedules.filter { $1.confirmedAsOf != nil }.map(\.key.number).sorted()
        guard !confirmed.isEmpty else { return }
        try transaction.query(Queries.foldClocks, .int8s(confirmed))
    }

    /// Locks the pollers of rows that are about to change, and their successors.
    init(subscriptions: [Int64] = [], purchases: [Int64] = [], in transaction: Transaction) throws {
        let question = FoundPollers.Question(subscriptions: subscriptions, purchases: purchases)
        try self.init([], and: FoundPollers(question, in: transaction), in: transaction)
    }

    /// Whether Apple may be asked about a receipt's contents, by what is stored. SQL: `ledger.can_poll`.
    func canPoll(_ receipt: ReceiptID) -> Bool {
        let known = receipts[receipt]
        guard known?.verifiedAt != nil, known?.rejections == 0, known?.isErased == false else { return false }
        guard let schedule = schedules[receipt] else { return true }
        return schedule.lane != .quarantine && schedule.endedAttempts < SettlementRun.fruitlessAttemptsMax
    }

    /// Whether a receipt can bring nothing more: it was erased, never vouched for, or refused for good.
    func isLost(_ receipt: ReceiptID) -> Bool {
        guard let known = receipts[receipt], known.verifiedAt != nil, !known.isErased else { return true }
        return known.rejections > 0 && schedules[receipt] == nil
    }

    /// Whether an answer comes too late to say anything: its customer was erased, or another lease was given since and
    /// the answer brings no evidence. Evidence carries its own clock and is never too late.
    func isOutdated(_ settlement: Settlement) -> Bool {
        let claim = settlement.claim
        guard let receipt = receipts[claim.receiptID], !receipt.isErased else { return true }
        let newest = schedules[claim.receiptID]?.leaseToken ?? receipt.settledToken
        return settlement.evidence == nil && newest != claim.leaseToken
    }

    func isLeaseLost(_ claim: Claim) -> Bool {
        schedules[claim.receiptID].map { $0.leaseToken != claim.leaseToken } ?? false
    }

    /// Throws unless the poller of a row that is now locked is among the locked receipts.
    func require(_ poller: ReceiptID?) throws(PollersChanged) {
        if let poller, receipts[poller] == nil { throw PollersChanged() }
    }
}

/// Another transaction changed a poller, or merged a customer, between the look-up and the lock.
struct PollersChanged: Error {
    /// What callers get when it happens again and again.
    static let lasting = LedgerError(
        .busy, "Other checks kept changing which receipt is asked about it; it is asked about again.")
}

extension SubscriptionLedger {
    private static let triesMax = 10

    /// Lets other receipts take over what `receipts` poll, because these cannot go on.
    func handOver(from receipts: [ReceiptID], in transaction: Transaction) throws {
        guard !receipts.isEmpty else { return }
        let question = FoundPollers.Question(polledBy: receipts, unable: receipts)
        var run = try SettlementRun(covering: question, in: transaction)
        try run.changePolling(in: transaction)
    }

    /// Runs a change of what receipts poll, and runs it again when it collides with other writers.
    func changingPollers<Result: Sendable>(
        orCustomers: Bool = false, _ body: @escaping @Sendable (Transaction) throws -> Result
    ) async throws -> Result {
        try await retryingCollisions(orBusy: orCustomers) { try await database.transaction { try body($0) } }
    }

    /// Runs a change again when it collides with other writers; with `orBusy` also when something is busy.
    func retryingCollisions<Result: Sendable>(
        orBusy: Bool = false, _ change: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await repeating { error, tries in
                let collided = (error as? DatabaseError)?.isSerializationFailure == true || error is PollersChanged
                return tries < Self.triesMax && (collided || orBusy && (error as? LedgerError)?.kind == .busy)
            } _: {
                try await change()
            }
        } catch is PollersChanged { throw PollersChanged.lasting }
    }
}

extension SettlementRun {
    /// Locks subscriptions and purchases only to change which receipts are asked about them.
    init(covering question: FoundPollers.Question, apps: [Int32: App] = [:], in transaction: Transaction) throws {
        let found = try FoundPollers(question, in: transaction)
        let pollers = try LockedPollers(question.polledBy, and: found, in: transaction)
        try pollers.foldClocks(in: transaction)
        let receipts = Parameter.int8s(question.polledBy.map(\.number))
        let subscriptions = try transaction.query(
            Queries.lockSubscriptions,
            SubscriptionRowKey.parameters([]) + [receipts, .int8s(question.subscriptions)])
        let purchases = try transaction.query(
            Queries.lockPurchases, PurchaseRowKey.parameters([]) + [receipts, .int8s(question.purchases)])
        try found.requireUnchanged(in: transaction)
        try self.init(
            locked: subscriptions, purchases: purchases, pollers: pollers, unable: question.unable, apps: apps,
            in: transaction)
    }

    /// Decides again which receipt is asked about each locked subscription and purchase, and when; writes the result.
    mutating func changePolling(in transaction: Transaction) throws {
        try planPolling()
        try writePolling(in: transaction)
    }
}
