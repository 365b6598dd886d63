import Postgres
import SQL
package import Subscriptions

extension LedgerSettlements {
    /// Settles answers that equal the last ones, at a fraction of the cost: each moves the schedule row of its receipt.
    ///
    /// Returns the receipts settled by this, none after a serialization failure. Others need a full settlement: time
    /// alone changed something, a customer uploaded the receipt, another receipt has since reported what it polls, or
    /// the lease is lost.
    package func confirm(_ answers: [EqualAnswer]) async throws -> Set<ReceiptID> {
        // By number, as other writers lock schedule rows: two batches then seldom wait for each other.
        let rows = answers.compactMap(Confirmation.init(of:))
            .sorted { $0.answer.claim.receiptID < $1.answer.claim.receiptID }
        guard let worker = rows.first?.answer.claim.worker else { return [] }
        do {
            return try await database.transaction { transaction in
                let rowsConfirmed = try transaction.query(Queries.confirm, [.int4(worker.number)], rows: rows)
                let confirmed = Set(try rowsConfirmed.map { ReceiptID(try $0.int8("receipt_id")) })
                try Self.moveHistories(
                    of: rows.map(\.answer).filter { confirmed.contains($0.claim.receiptID) }, in: transaction)
                return confirmed
            }
        } catch let error as DatabaseError where error.isSerializationFailure {
            return []
        }
    }

    private static func moveHistories(of answers: [EqualAnswer], in transaction: Transaction) throws {
        let moved = answers.filter { $0.revision != nil }
        guard !moved.isEmpty else { return }
        try transaction.query(
            Queries.moveHistories, .int8s(moved.map(\.claim.receiptID.number)), .texts(moved.map(\.revision)))
    }
}

/// An equal answer with the plan that follows from it, as a row of `confirm`.
struct Confirmation: ColumnarRow, Sendable {
    let answer: EqualAnswer
    /// The database's clock by which the next check is planned, and which the answer gets.
    let plannedAt: Instant
    let dueAt: Instant
    let lane: Lane

    /// Plans the next check; nil where the answer has to be settled in full.
    init?(of answer: EqualAnswer) {
        let claim = answer.claim
        let now = claim.databaseNow
        guard let environment = claim.environment, let polled = claim.polled,
            let next = polled.nextCheck(
                in: environment, now: now, seed: claim.seed, policy: claim.app.policy(for: environment))
        else { return nil }
        (self.answer, plannedAt, dueAt, lane) = (answer, now, next.at, next.lane)
    }

    static let columns: [Column<Confirmation>] = [
        .int8("receipt_id", \.answer.claim.receiptID.number),
        .int8("lease_token", \.answer.claim.leaseToken),
        .bytea("last", \.answer.last.bytes),
        .bytea("fingerprint", \.answer.fingerprint.bytes),
        .instant("as_of", \.answer.asOf),
        .instant("due_at", \.dueAt),
        .text("lane", \.lane.rawValue),
        .instant("planned_at", \.plannedAt),
    ]
}

/// An answer equal to the last one about its receipt, at a later clock.
package struct EqualAnswer: Sendable {
    let claim: Claim
    let last: Fingerprint
    /// The fingerprint of this one, which is another one if it says the same in other bytes.
    let fingerprint: Fingerprint
    /// Apple's clock.
    let asOf: Instant
    /// Where the next read of the Server API's history begins; nil: as before.
    let revision: String?

    /// Creates an answer equal to the last one; nil when its bytes differ, or when it ends a row of fruitless calls:
    /// then the receipt may take over what others poll, which only a full settlement decides.
    package init?(to claim: Claim, fingerprint: Fingerprint, asOf: Instant) {
        guard claim.fingerprint == fingerprint, claim.attempts <= SettlementRun.fruitlessAttemptsMax else { return nil }
        self.claim = claim
        (last, self.fingerprint) = (fingerprint, fingerprint)
        (self.asOf, revision) = (asOf, nil)
    }

    /// Creates an answer that says in other bytes what the last one said; nil when it says something else.
    init?(_ settlement: Settlement) {
        let claim = settlement.claim
        guard let last = claim.fingerprint, let fingerprint = settlement.fingerprint,
            let evidence = settlement.evidence, claim.attempts <= SettlementRun.fruitlessAttemptsMax,
            claim.meaning == Fingerprint(of: evidence, app: claim.app)
        else { return nil }
        self.claim = claim
        (self.last, self.fingerprint) = (last, fingerprint)
        (asOf, revision) = (evidence.asOf, settlement.server?.revision)
    }
}

/// What a receipt polls, as far as the schedule depends on it. It stays the same while answers repeat.
struct PolledContents: Sendable, Hashable {
    let subscriptions: [ScheduleInput]
    let purchasedAt: [Instant]

    /// When time alone next changes something of it; nil for never.
    var lastsUntil: Instant? { subscriptions.compactMap(\.until).min() }

    /// Returns the next check and its lane; nil when something is over, which a full settlement decides.
    func nextCheck(
        in environment: StoreEnvironment, now: Instant, seed: UInt64, policy: Policy
    ) -> (at: Instant, lane: Lane)? {
        var planned: [Instant] = []
        for input in subscriptions {
            let plan = Subscriptions.nextCheck(
                for: [input], environment: environment, now: now, seed: seed, policy: policy)
            guard case .at(let instant) = plan else { return nil }
            planned.append(instant)
        }
        let purchases = Subscriptions.nextCheck(
            for: [], purchasedAt: purchasedAt, environment: environment, now: now, seed: seed, policy: policy)
        if case .at(let instant) = purchases { planned.append(instant) }
        return planned.min().map { ($0, Lane(of: subscriptions, next: $0)) }
    }

    /// Creates the contents at Apple's clock `asOf` from what a settlement folded.
    init(subscriptions states: [SubscriptionState], purchases: [PurchaseState], asOf: Instant, policy: Policy) {
        subscriptions = states.compactMap { ScheduleInput(of: $0, at: asOf, policy: policy) }
        purchasedAt = purchases.map(\.purchasedAt)
    }

    /// Reads the text form; nil for a text of another form, such as one of a later program.
    init?(text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "|"), omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        var (inputs, purchases): ([ScheduleInput], [Instant]) = ([], [])
        for part in parts[0].split(separator: UInt8(ascii: ";")) {
            guard let input = ScheduleInput(text: part) else { return nil }
            inputs.append(input)
        }
        for part in parts[1].split(separator: UInt8(ascii: ",")) {
            guard let instant = Instant(text: part) else { return nil }
            purchases.append(instant)
        }
        (subscriptions, purchasedAt) = (inputs, purchases)
    }

    /// The text form for a column: the subscriptions separated by semicolons, a bar, the purchases separated by commas.
    var text: String {
        subscriptions.map(\.text).joined(separator: ";") + "|"
            + purchasedAt.map { "\($0.milliseconds)" }.joined(separator: ",")
    }
}

extension ScheduleInput {
    /// The fields separated by commas; instants are in milliseconds.
    fileprivate var text: String {
        [
            state.rawValue, reason?.rawValue ?? "", "\(since.milliseconds)", until.map { "\($0.milliseconds)" } ?? "",
            accessEndsAt.map { "\($0.milliseconds)" } ?? "", "\(expiresAt.milliseconds)",
            "\(headStartsAt.milliseconds)", renewalExpected ? "renews" : "", isRenewalOff ? "off" : "",
            mayRecover ? "recovers" : "", isGraceAssumed ? "assumed" : "", isMonthly ? "monthly" : "",
        ].joined(separator: ",")
    }

    fileprivate init?(text: Substring.UTF8View) {
        let fields = text.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard fields.count == 12, let state = State(rawValue: String(Substring(fields[0]))),
            let since = Instant(text: fields[2]), let expiresAt = Instant(text: fields[5]),
            let headStartsAt = Instant(text: fields[6])
        else { return nil }
        self.init(
            state: state, reason: Reason(rawValue: String(Substring(fields[1]))), since: since,
            until: Instant(text: fields[3]), accessEndsAt: Instant(text: fields[4]), expiresAt: expiresAt,
            headStartsAt: headStartsAt, renewalExpected: !fields[7].isEmpty, isRenewalOff: !fields[8].isEmpty,
            isGraceAssumed: !fields[10].isEmpty, mayRecover: !fields[9].isEmpty, isMonthly: !fields[11].isEmpty)
    }
}

extension Instant {
    fileprivate init?(text: Substring.UTF8View) {
        guard let milliseconds = Int64(Substring(text)) else { return nil }
        self.init(milliseconds: milliseconds)
    }
}
