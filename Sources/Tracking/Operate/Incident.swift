import Postgres
import SQL
package import Subscriptions

/// A period in which Apple's answers about an app were not trusted.
package struct Incident: Sendable {
    package enum Kind: String, Sendable {
        /// Once-verified receipts were refused in bulk; during the incident each refusal counts as no answer.
        case refusals
        /// Answers were dated more than an hour ahead of the database's clock: one is wrong. Each counts as no answer.
        case clock
    }

    package let bundleID: BundleID
    package let kind: Kind
    /// The time of the first such answer, by the database's clock.
    package let openedAt: Instant
    /// The end; nil while the incident is open.
    package let closedAt: Instant?
    /// Answers about once-verified receipts during the incident; a receipt that was refused repeatedly counts once.
    package let asked: Int64
    /// Once-verified receipts refused during the incident, or answers that were not trusted.
    package let refused: Int64
    /// The reason of the last refusal or untrusted answer, in one sentence.
    package let lastReason: String

    init(row: Row) throws {
        bundleID = try row.id("bundle_id")
        kind = try row.word("kind")
        openedAt = try row.instant("opened_at")
        closedAt = try row.instantIfPresent("closed_at")
        asked = try row.int8("asked")
        refused = try row.int8("refused")
        lastReason = try row.text("last_reason")
    }
}

extension LedgerAdmin {
    /// Returns incidents, at most `limit`: open ones first, then the newest.
    package func incidents(limit: Int) async throws -> [Incident] {
        try await query(Queries.listIncidents, .int4(Int32(clamping: limit))).map(Incident.init(row:))
    }
}

/// The limits beyond which refusals of once-verified receipts are Apple's fault and not the receipts'.
///
/// Apple verified these receipts recently, so they are canaries. A single one can go bad, for example when an account
/// is deleted; many at once go bad only when Apple itself has a problem. A receipt that was refused before, or not
/// asked about for long, may be gone: after a long stop many of those come due together. The share is of the answers
/// about an app's once-verified receipts: so few of ten million stored ones are asked about in ten minutes that no outage
/// of that length could refuse 2 % of all.
enum CanaryLimits {
    /// The window in which refusals and answers are counted, and the quiet time before an incident ends, in seconds.
    static let windowSeconds = 600.0
    /// The share of refused answers above which an incident opens, in percent.
    static let sharePercent: Int32 = 2
    /// The fewest refused receipts, as a small app also loses one or two; as many are verified again before the end.
    static let receiptsMin: Int32 = 3
    /// Days under the speed-up for which a verification makes a receipt a canary: one more than refund checks are apart.
    static let vouchedDays: Int64 = 31
    /// The rate at which refused receipts are asked about again, in receipts a second.
    static let askAgainPerSecond = 10.0
    /// The time within which all of them are asked about again, however many they are, in seconds.
    static let askAgainWithinSeconds = 3_600.0
    /// The maximum number of receipts for which one statement takes back refusals or schedules another check.
    static let receiptsAtOnceMax: Int32 = 2_000
}

extension LedgerOperations {
    /// Opens and closes incidents, takes back earlier refusals and schedules new checks of refused receipts. Call it every
    /// few seconds; one caller works at a time. Refusals that were settled before an incident was recognised count until then.
    package func watchCanaries() async throws {
        let window = Parameter.float8(CanaryLimits.windowSeconds)
        let limits = [window, .int4(CanaryLimits.receiptsMin), .int4(CanaryLimits.sharePercent)]
        try await alone { transaction in
            try transaction.query(Queries.forgetRefusals, window)
            try transaction.query(Queries.openIncidents, limits)
            try transaction.query(Queries.closeClockIncidents, window)
            return try transaction.query(Queries.closeIncidents, limits).count
        }
        let apps = try await appsByID()
        try await repeatedly { most, transaction in
            let receipts = try transaction.query(Queries.takeRefusalsBack, most).map { try $0.int8("receipt_id") }
            try coverAgain(through: receipts, apps: apps, in: transaction)
            return receipts.count
        }
        let pace: [Parameter] = [.float8(CanaryLimits.askAgainPerSecond), .float8(CanaryLimits.askAgainWithinSeconds)]
        try await repeatedly { most, transaction in
            try transaction.query(Queries.askRefusedAgain, [most] + pace).count
        }
    }

    /// Lets receipts whose refusals were taken back poll what they hold where no able receipt polls it.
    private func coverAgain(through receipts: [Int64], apps: [Int32: App], in transaction: Transaction) throws {
        guard !receipts.isEmpty else { return }
        let uncovered = try transaction.query(Queries.findUncovered, .int8s(receipts))
        guard !uncovered.isEmpty else { return }
        let question = FoundPollers.Question(
            subscriptions: try uncovered.compactMap { try $0.int8IfPresent("subscription_id") },
            purchases: try uncovered.compactMap { try $0.int8IfPresent("purchase_id") })
        var run = try SettlementRun(covering: question, apps: apps, in: transaction)
        run.review(atOnce: false)
        try run.changePolling(in: transaction)
    }

    /// Runs `body` for a limited number of receipts, each time in a transaction of its own, until it handles fewer.
    private func repeatedly(_ body: @escaping @Sendable (Parameter, Transaction) throws -> Int) async throws {
        let most = CanaryLimits.receiptsAtOnceMax
        while try await alone({ try body(.int4(most), $0) }) == Int(most) {}
    }

    /// Runs `body` in a transaction of its own; does nothing while another process watches.
    @discardableResult
    private func alone(_ body: @escaping @Sendable (Transaction) throws -> Int) async throws -> Int {
        try await ledger.changingPollers { transaction in
            let isAlone = try transaction.query(Queries.lockIncidents).first?.bool("locked") == true
            return isAlone ? try body(transaction) : 0
        }
    }
}

extension SettlementRun {
    /// Returns the apps with an open incident, among those with refused receipts in this batch.
    static func incidents(among batch: [Settlement], in transaction: Transaction) throws -> Set<Int32> {
        let apps = Set(batch.filter(\.isRefusedByApple).map(\.claim.app.id))
        guard !apps.isEmpty else { return [] }
        let rows = try transaction.query(Queries.readIncidents, .int4s(apps.sorted()))
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
            Queries.insertRefusals, .int8s(refused.map(\.settlement.claim.receiptID.number)),
            .int4s(refused.map(\.settlement.claim.app.id)), .timestamptz(microseconds: recordedMicroseconds),
            .bools(before.map { $0?.verifiedAt != nil }), .bools(refused.map { !$0.isForgiven }),
            .int2s(before.map { Int16(clamping: $0?.rejections ?? 0) }),
            .texts(refused.map(\.settlement.finding.reason)), .bools(refused.map { isCanary($0.settlement.claim) }))
    }

    /// Returns whether a refused receipt says something about Apple rather than about itself; equal answers verify it too.
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
            Queries.openClockIncidents, .int4s(wrong.map(\.key)), .int8s(wrong.map { Int64($0.value.count) }),
            .texts(wrong.map { $0.value.last?.finding.reason }), .timestamptz(microseconds: recordedMicroseconds))
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
