import Postgres
import SQL
import Subscriptions

/// The receipts whose schedule a transaction may change: its own, the pollers of what it touches, and their successors.
///
/// The transaction locks their schedule rows and then the receipts, by receipt id, before any subscription.
/// Transactions that move each other's schedules therefore do not deadlock.
struct LockedPollers: Sendable {
    /// A schedule row as it was when locked.
    struct Schedule: Sendable {
        /// Apple's clock of the newest answer that said what the receipt's last observation says; nil where the next
        /// answer is read in full anyway.
        let confirmedAsOf: Instant?
        /// How many checks may still bring no news of what a notification states.
        let followUps: Int
        /// Whether a check is wanted after the one under way.
        let isWanted: Bool
        let lane: Lane
        /// Ended claims since the last answer that counts; a claim that a worker still holds is not among them.
        let endedAttempts: Int
        /// The token of the newest lease.
        let leaseToken: Int64
        /// Whether a worker has a lease on it.
        let isLeased: Bool
    }

    let found: FoundPollers
    let receipts: [ReceiptID: RememberedReceipt]
    let schedules: [ReceiptID: Schedule]

    init(_ own: [ReceiptID], and found: FoundPollers, in transaction: Transaction) throws {
        self.found = found
        let ids = Parameter.int8s(found.receipts.union(own).map(\.number).sorted())
        schedules = try transaction.query(Queries.lockSchedules, [ids]).reduce(into: [:]) { schedules, row in
            schedules[ReceiptID(try row.int8("receipt_id"))] = Schedule(
                confirmedAsOf: try row.instantIfPresent("confirmed_as_of"),
                followUps: Int(try row.int2("follow_ups")), isWanted: try row.bool("wanted"),
                lane: try row.word("lane"),
                endedAttempts: Int(try row.int4("ended_attempts")), leaseToken: try row.int8("lease_token"),
                isLeased: try row.bool("leased"))
        }
        receipts = try keyed(
            transaction.query(Queries.readReceipts, [ids]), RememberedReceipt.init(row:), by: \.receiptID)
    }

    /// Moves the clocks of equal answers from the schedule rows to what the receipts poll and to their observations.
    /// Whatever then changes pollers or schedules loses no clock.
    func foldClocks(in transaction: Transaction) throws {
        let confirmed = schedules.filter { $1.confirmedAsOf != nil }.map(\.key.number).sorted()
        guard !confirmed.isEmpty else { return }
        try transaction.query(Queries.foldClocks, [.int8s(confirmed)])
    }

    /// Locks the pollers of rows that are about to change, and their successors.
    init(subscriptions: [Int64] = [], purchases: [Int64] = [], in transaction: Transaction) throws {
        var question = FoundPollers.Question()
        (question.subscriptions, question.purchases) = (subscriptions, purchases)
        try self.init([], and: FoundPollers(question, in: transaction), in: transaction)
    }

    /// Whether Apple may be asked about a receipt's contents, by what is stored; `ledger.can_poll` says the same in
    /// SQL.
    func canPoll(_ receipt: ReceiptID) -> Bool {
        guard let known = receipts[receipt], known.verifiedAt != nil, known.rejections == 0, !known.isErased else {
            return false
        }
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

    /// Whether another lease was given since this claim.
    func isLeaseLost(_ claim: Claim) -> Bool {
        schedules[claim.receiptID].map { $0.leaseToken != claim.leaseToken } ?? false
    }

    /// Throws unless the poller of a row that is now locked is among the locked receipts.
    func require(_ poller: ReceiptID?) throws(PollersChanged) {
        if let poller, receipts[poller] == nil { throw PollersChanged() }
    }
}

/// Another transaction changed a poller, or merged a customer, between the look-up and the lock.
struct PollersChanged: Error, CustomStringConvertible {
    var description: String { "Other checks kept changing which receipt is asked about it; it is asked about again." }
}
