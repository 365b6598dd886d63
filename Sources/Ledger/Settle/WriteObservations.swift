import Postgres
import SQL
import Subscriptions

/// The stored observation of a receipt's newest answer.
struct KeptObservation: Sendable {
    let settlement: Settlement
    let meaning: Meaning
    let id: Int64
    /// Microseconds; an observation's row is found by its id and this instant.
    let recordedAt: Int64
    /// Whether the answer means the same as the one before it.
    let isRepeated: Bool
}

extension SettlementRun {
    /// Stores Apple's answers: a new row for a new meaning, a later end for an equal one. An equal answer with an older
    /// clock gets its own row, because it was the first to say so.
    func keepObservations(
        of plans: [ReceiptPlan], ids: [Int64], in transaction: Transaction
    ) throws -> [KeptObservation] {
        var fresh = ids.makeIterator()
        let kept = plans.map(\.settlement).compactMap { settlement -> KeptObservation? in
            let meaning = Meaning(of: settlement.finding)
            let before = receipts[settlement.claim.receiptID]
            if let before, let id = before.observationID, let at = before.observationRecordedAt,
                let from = before.observedFrom, from <= settlement.asOf, before.meaning == meaning.digest
            {
                return KeptObservation(
                    settlement: settlement, meaning: meaning, id: id, recordedAt: at, isRepeated: true)
            }
            return fresh.next().map { id in
                KeptObservation(
                    settlement: settlement, meaning: meaning, id: id, recordedAt: recordedMicroseconds,
                    isRepeated: false)
            }
        }
        try extend(kept.filter(\.isRepeated).map { ($0.id, $0.recordedAt, $0.settlement.asOf) }, in: transaction)
        try insert(kept.filter { !$0.isRepeated }, in: transaction)
        return kept
    }

    private func extend(
        _ ends: [(id: Int64, recordedAt: Int64, end: Instant)], in transaction: Transaction
    ) throws {
        guard !ends.isEmpty else { return }
        try transaction.query(
            Queries.extendObservations,
            [.int8s(ends.map(\.id)), .timestamptzs(ends.map(\.recordedAt)), .instants(ends.map(\.end))])
    }

    private func insert(_ kept: [KeptObservation], in transaction: Transaction) throws {
        guard !kept.isEmpty else { return }
        try transaction.query(Queries.insertObservations, rows: kept.map(ObservationRow.init(_:)))
    }
}

/// An observation as a row of `insert_observations`.
struct ObservationRow {
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

extension ObservationRow: ColumnarRow {
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

    /// Whether Apple refuses the app itself, or is not asked because it does: that says nothing about the receipt.
    var isOfTheApp: Bool {
        guard case .indeterminate(let failure) = self else { return false }
        switch failure.kind {
        case .appRefused, .heldBack: return true
        case .noUsableAnswer, .clockAhead: return false
        }
    }

    /// Why the whole app has to wait: Apple refused its key. Nil for every other answer.
    var appRefusal: String? {
        guard case .indeterminate(let failure) = self, failure.kind == .appRefused else { return nil }
        return failure.reason
    }

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
