import Postgres
import SQL
import Subscriptions

/// The stored observation of a receipt's newest answer.
struct KeptObservation: Sendable {
    let settlement: Settlement
    let meaning: MeaningDigest
    let id: Int64
    /// Microseconds; an observation's row is found by its id and this instant.
    let recordedAt: Int64
    /// Whether the answer means the same as the one before it.
    let extendsLast: Bool
}

extension SettlementRun {
    /// Stores Apple's answers: a new row for a new meaning, a later end for an equal one. An equal answer gets its own
    /// row where its clock counts by itself, because a rebuild reads a row at its ends alone.
    func keepObservations(
        of plans: [ReceiptPlan], ids: [Int64], in transaction: Transaction
    ) throws -> [KeptObservation] {
        var fresh = ids.makeIterator()
        let kept = plans.map(\.settlement).compactMap { settlement -> KeptObservation? in
            let meaning = MeaningDigest(of: settlement.finding)
            if let before = receipts[settlement.claim.receiptID], let id = before.observationID,
                let at = before.observationRecordedAt, let from = before.observedFrom, from <= settlement.asOf,
                before.meaning == meaning.digest, !countsByItself(settlement)
            {
                return KeptObservation(
                    settlement: settlement, meaning: meaning, id: id, recordedAt: at, extendsLast: true)
            }
            return fresh.next().map { id in
                KeptObservation(
                    settlement: settlement, meaning: meaning, id: id, recordedAt: recordedMicroseconds,
                    extendsLast: false)
            }
        }
        let ends = kept.filter(\.extendsLast)
        if !ends.isEmpty {
            try transaction.query(
                Queries.extendObservations, .int8s(ends.map(\.id)), .timestamptzs(ends.map(\.recordedAt)),
                .instants(ends.map(\.settlement.asOf)))
        }
        let rows = kept.filter { !$0.extendsLast }.map(ObservationRow.init(_:))
        if !rows.isEmpty { try transaction.query(Queries.insertObservations, rows: rows) }
        return kept
    }
}

/// An observation as a row of `insert_observations`.
struct ObservationRow: ColumnarRow {
    let id: Int64
    let receiptID: ReceiptID
    let appID: Int32
    /// 0 where Apple was not asked.
    var leaseToken: Int64 = 0
    let outcome: String
    var status: Int?
    let reason: String?
    let environment: StoreEnvironment?
    let asOf: Instant?
    /// Empty where Apple was not asked.
    var meaning: [UInt8] = []
    var body: [UInt8]?
    let recordedMicroseconds: Int64

    static let columns: [Column<ObservationRow>] = [
        .int8("observation_id", \.id),
        .int8("receipt_id", \.receiptID.number),
        .int4("app_id", \.appID),
        .int8("lease_token", \.leaseToken),
        .text("outcome", \.outcome),
        .int4("status") { $0.status.map(Int32.init(clamping:)) },
        .text("reason", \.reason),
        .text("environment", \.environment?.rawValue),
        .instant("as_of", \.asOf),
        .bytea("meaning", \.meaning),
        .bytea("body", \.body),
        .microseconds("recorded_at", \.recordedMicroseconds),
    ]
}

extension ObservationRow {
    fileprivate init(_ kept: KeptObservation) {
        let settlement = kept.settlement
        self.init(
            id: kept.id, receiptID: settlement.claim.receiptID, appID: settlement.claim.app.id,
            leaseToken: settlement.claim.leaseToken, outcome: settlement.finding.outcome.rawValue,
            status: settlement.finding.status, reason: settlement.finding.reason,
            environment: settlement.evidence?.environment, asOf: settlement.asOf, meaning: kept.meaning.digest,
            body: settlement.saysSomething ? settlement.body : nil, recordedMicroseconds: kept.recordedAt)
    }
}

extension Finding {
    var outcome: Outcome {
        switch self {
        case .verified: .verified
        case .rejected: .rejected
        case .indeterminate: .indeterminate
        }
    }

    var reason: String? {
        switch self {
        case .verified(let evidence): evidence.remark
        case .rejected(let refusal): refusal.reason
        case .indeterminate(let failure): failure.reason
        }
    }

    /// Why the answer says nothing; nil for every other one.
    var failure: CheckFailure? { if case .indeterminate(let failure) = self { failure } else { nil } }

    /// Whether Apple refuses the app itself, or is not asked because it does: that says nothing about the receipt.
    var isOfTheApp: Bool {
        switch failure?.kind {
        case .appRefused, .heldBack: true
        case .noUsableAnswer, .clockAhead, nil: false
        }
    }

    /// Why the whole app has to wait: Apple refused its key. Nil for every other answer.
    var appRefusal: String? { failure.flatMap { $0.kind == .appRefused ? $0.reason : nil } }

    var refusal: Refusal.Kind? {
        switch self {
        case .rejected(let refusal): refusal.kind
        case .verified, .indeterminate: nil
        }
    }

    var status: Int? {
        switch self {
        case .verified: 0
        case .rejected(let refusal): refusal.status
        case .indeterminate(let failure): failure.status
        }
    }
}

extension SettlementRun {
    func writeReceipts(_ plans: [ReceiptPlan], _ kept: [KeptObservation], in transaction: Transaction) throws {
        let observations = Dictionary(kept.map { ($0.settlement.claim.receiptID, $0) }) { _, last in last }
        let vouched = vouchedAgain(plans.map(\.settlement))
        let rows = plans.map { plan in
            ReceiptWrite(
                plan: plan, observation: observations[plan.settlement.claim.receiptID],
                latestReceipt: storesLatestReceipt(plan.settlement) ? plan.settlement.latestReceipt : nil,
                historyRevision: awaitsSecondAnswer(plan.settlement) ? nil : plan.settlement.newRevision,
                recordedMicroseconds: recordedMicroseconds)
        }
        try transaction.query(
            Queries.writeReceipts, [.int4s(vouched.map(\.app)), .int8s(vouched.map(\.answers))], rows: rows)
    }

    /// Gives back the leases that this worker still has, with the time of the next check, and pauses the calls of
    /// server keys that Apple refuses. Returns the receipts that were rescheduled.
    func writeSchedules(_ plans: [ReceiptPlan], in transaction: Transaction) throws -> Set<ReceiptID> {
        var due: [ScheduleWrite] = []
        var retired: [ReceiptPlan] = []
        for plan in plans {
            switch plan.next {
            case .at(let instant):
                due.append(ScheduleWrite(plan: plan, dueAt: instant, recordedMicroseconds: recordedMicroseconds))
            case .retired: retired.append(plan)
            }
        }
        let worker = Parameter.int4(batch.first?.claim.worker.number)
        let rows = try transaction.query(Queries.reschedule, [worker], rows: due)
        if !retired.isEmpty {
            try transaction.query(
                Queries.retire, worker, .int8s(retired.map(\.settlement.claim.receiptID.number)),
                .int8s(retired.map(\.settlement.claim.leaseToken)))
        }
        try pauseRefusedKeys(plans, in: transaction)
        return try Set(rows.map { ReceiptID(try $0.int8("receipt_id")) })
    }

    /// Pauses the calls of the Server API where Apple refuses the key, in the environment in which it did.
    private func pauseRefusedKeys(_ plans: [ReceiptPlan], in transaction: Transaction) throws {
        let refused = plans.filter { $0.settlement.finding.appRefusal != nil }.map(\.settlement)
        let named = refused.map { ("\($0.claim.app.id) \($0.callEnvironment.rawValue)", $0) }
        let places = Dictionary(named) { first, _ in first }
        // In the same order everywhere, because two settlements may pause the same calls.
        for (_, first) in places.sorted(by: { $0.key < $1.key }) {
            try transaction.query(
                Queries.pauseRefusedCalls, .int4(first.claim.app.id), .text(first.callEnvironment.rawValue),
                .float8(Double(Self.refusedKeyPauseSeconds)), .text(first.finding.appRefusal),
                .instant(first.claim.claimedAt))
        }
    }

    /// Whether the newest receipt is stored: only with a new version, so that a mere confirmation writes little.
    private func storesLatestReceipt(_ settlement: Settlement) -> Bool {
        settlement.subscriptionKeys.contains { key in
            subscriptions[key].map { $0.version > $0.stored?.version ?? 0 } ?? false
        }
    }
}

/// A receipt as a row of `write_receipts`.
struct ReceiptWrite: ColumnarRow {
    let plan: ReceiptPlan
    let observation: KeptObservation?
    /// Stored if it is not nil.
    let latestReceipt: [UInt8]?
    /// Where the next read of the history begins; nil: as before.
    let historyRevision: String?
    let recordedMicroseconds: Int64

    private var settlement: Settlement { plan.settlement }
    private var isForWrongSecret: Bool { settlement.finding.refusal == .wrongSecret }

    static let columns: [Column<ReceiptWrite>] = [
        .int8("receipt_id", \.settlement.claim.receiptID.number),
        .text("environment", \.settlement.evidence?.environment.rawValue),
        .instant("receipt_created_at", \.settlement.evidence?.receiptCreatedAt),
        .bytea("latest_receipt", \.latestReceipt),
        .text("outcome") {
            $0.isForWrongSecret || $0.settlement.finding.isOfTheApp ? nil : $0.settlement.finding.outcome.rawValue
        },
        .text("reason", \.settlement.finding.reason),
        .microseconds("asked_at", \.recordedMicroseconds),
        .microseconds("verified_at") { $0.settlement.evidence == nil ? nil : $0.recordedMicroseconds },
        .int2("rejections") { Int16(clamping: $0.plan.rejections) },
        .instant("rejected_since", \.plan.rejectedSince),
        .int2("equal_empty_answers") { Int16(clamping: $0.plan.emptyAnswers) },
        .int8("observation_id", \.observation?.id),
        .microseconds("observed_at", \.observation?.recordedAt),
        .bytea("meaning", \.observation?.meaning.digest),
        .int8("settled_token", \.settlement.claim.leaseToken),
        .bool("forgets_latest", \.plan.forgetsLatest),
        .text("transaction_id", \.settlement.newTransactionID?.text),
        .bool("vouched") { $0.settlement.evidence != nil && $0.settlement.vouching == .vouched },
        .text("history_revision", \.historyRevision),
    ]
}

/// The next check of a receipt as a row of `reschedule`.
struct ScheduleWrite: ColumnarRow {
    let plan: ReceiptPlan
    let dueAt: Instant
    let recordedMicroseconds: Int64

    static let columns: [Column<ScheduleWrite>] = [
        .int8("receipt_id", \.plan.settlement.claim.receiptID.number),
        .int8("lease_token", \.plan.settlement.claim.leaseToken),
        .instant("due_at", \.dueAt),
        .text("lane", \.plan.lane.rawValue),
        .int2("attempts") { Int16(clamping: max(0, $0.plan.attempts)) },
        .bytea("fingerprint", \.plan.recognition?.fingerprint.bytes),
        .bytea("meaning", \.plan.recognition?.meaning.bytes),
        .text("polled", \.plan.recognition?.polled.text),
        .instant("equal_until", \.plan.recognition?.polled.lastsUntil),
        .instant("as_of", \.plan.recognition?.asOf),
        .microseconds("recorded_at", \.recordedMicroseconds),
        .bool("backs_off") { $0.plan.settlement.evidence == nil },
        .int2("follow_ups") { Int16(clamping: $0.plan.followUps) },
    ]
}
