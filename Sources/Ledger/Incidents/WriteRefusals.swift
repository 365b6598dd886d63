import Postgres
import SQL
import Subscriptions

extension SettlementRun {
    /// Returns the apps with an open incident, among those with refused receipts in this batch; without refusals it
    /// sends no query.
    static func incidents(among batch: [Settlement], in transaction: Transaction) throws -> Set<Int32> {
        let apps = Set(batch.filter(\.isRefusedByApple).map(\.claim.app.id))
        guard !apps.isEmpty else { return [] }
        let rows = try transaction.query(Queries.readIncidents, [.int4s(apps.sorted())])
        return try Set(rows.map { try $0.int4("app_id") })
    }

    /// Returns whether a refusal counts as no answer, because too many of the app's once-verified receipts are refused.
    func isForgiven(_ settlement: Settlement) -> Bool {
        settlement.isRefusedByApple && incidents.contains(settlement.claim.app.id)
    }

    /// Stores refusals, from which the watch of the canaries makes incidents, and opens an incident for a wrong clock.
    func writeRefusals(_ plans: [ReceiptPlan], in transaction: Transaction) throws {
        try openClockIncidents(plans.map(\.settlement), in: transaction)
        let refused = plans.filter(\.settlement.isRefusedByApple)
        guard !refused.isEmpty else { return }
        let before = refused.map { receipts[$0.settlement.claim.receiptID] }
        try transaction.query(
            Queries.insertRefusals,
            [
                .int8s(refused.map(\.settlement.claim.receiptID.number)),
                .int4s(refused.map(\.settlement.claim.app.id)), .timestamptz(microseconds: recordedMicroseconds),
                .bools(before.map { $0?.verifiedAt != nil }), .bools(refused.map { !$0.isForgiven }),
                .int2s(before.map { Int16(clamping: $0?.rejections ?? 0) }),
                .texts(refused.map(\.settlement.finding.reason)),
                .bools(refused.map { isCanary($0.settlement.claim) }),
            ])
    }

    /// Returns whether a refused receipt says something about Apple rather than about itself. Equal answers also count
    /// as verifications.
    private func isCanary(_ claim: Claim) -> Bool {
        let receipt = claim.receiptID
        guard let before = receipts[receipt], !before.wasRefused, let verifiedAt = before.verifiedAt else {
            return false
        }
        let vouchedAt = pollers?.schedules[receipt]?.confirmedAsOf.map { max($0, verifiedAt) } ?? verifiedAt
        let longest = Delay.days(CanaryLimits.vouchedDays).divided(by: claim.app.speedup)
        return recordedAt - vouchedAt < longest
    }

    /// Opens incidents for wrong clocks. One is enough: no machine of Apple's or ours is ever an hour wrong by chance.
    private func openClockIncidents(_ settlements: [Settlement], in transaction: Transaction) throws {
        let wrong = Dictionary(grouping: settlements.filter(\.hasWrongClock), by: \.claim.app.id)
            .sorted { $0.key < $1.key }
        guard !wrong.isEmpty else { return }
        try transaction.query(
            Queries.openClockIncidents,
            [
                .int4s(wrong.map(\.key)), .int8s(wrong.map { Int64($0.value.count) }),
                .texts(wrong.map { $0.value.last?.finding.reason }), .timestamptz(microseconds: recordedMicroseconds),
            ])
    }

    /// Returns the number of once-verified receipts of each app that Apple verified again.
    func vouchedAgain(_ settlements: [Settlement]) -> [(app: Int32, answers: Int64)] {
        let again = settlements.filter { $0.evidence != nil && receipts[$0.claim.receiptID]?.verifiedAt != nil }
        return Dictionary(grouping: again, by: \.claim.app.id).map { (app: $0.key, answers: Int64($0.value.count)) }
    }
}

extension Settlement {
    /// Whether the answer is dated so far ahead that it is not trusted.
    fileprivate var hasWrongClock: Bool {
        guard case .indeterminate(let failure) = finding else { return false }
        return failure.kind == .clockAhead
    }

    /// Whether Apple refused the receipt itself: a wrong secret is the app's fault, a wrong bundle the uploader's.
    fileprivate var isRefusedByApple: Bool {
        switch finding.refusal {
        case .notAuthentic, .accountGone, .wrongEnvironment, .badRequest, .unknownTransaction: true
        case .otherBundle, .wrongSecret, nil: false
        }
    }
}
