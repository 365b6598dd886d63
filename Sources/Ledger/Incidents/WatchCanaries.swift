import Postgres
import SQL
import Subscriptions

/// The limits beyond which refusals of once-verified receipts are Apple's fault and not the receipts'.
///
/// Apple verified these receipts recently, so they are canaries. A single one can go bad, for example when an account
/// is deleted; many at once go bad only when Apple itself has a problem. A receipt that was refused before, or not
/// asked about for long, may be gone: after a long stop many of those come due together. The share is of the answers
/// about an app's once-verified receipts, not of all stored ones: so few of ten million receipts are asked about in ten
/// minutes that no outage of that length could refuse 2 % of all.
enum CanaryLimits {
    /// The window in which refusals and answers are counted, and the quiet time before an incident ends, in seconds.
    static let windowSeconds = 600.0
    /// The share of refused answers above which an incident opens, in percent.
    static let sharePercent: Int32 = 2
    /// The minimum number of different refused receipts, whatever their share: a small app also loses one or two. An
    /// incident ends only after as many are verified again.
    static let receiptsMin: Int32 = 3
    /// How long a verification makes a receipt a canary, in days under the speed-up: one day longer than the longest
    /// interval between two checks for refunds.
    static let vouchedDays: Int64 = 31
    /// The rate at which refused receipts are asked about again, in receipts a second.
    static let askAgainPerSecond = 10.0
    /// The time within which all of them are asked about again, however many they are, in seconds.
    static let askAgainWithinSeconds = 3_600.0
    /// The maximum number of receipts for which one statement takes back refusals or schedules another check.
    static let receiptsAtOnceMax: Int32 = 2_000
}

extension LedgerOperations {
    /// Opens and closes incidents, takes back earlier refusals and schedules new checks of refused receipts.
    ///
    /// Call it every few seconds; one caller works at a time, another does nothing. Refusals that were settled before
    /// an incident was recognised count until it is recognised.
    package func watchCanaries() async throws {
        let window = Parameter.float8(CanaryLimits.windowSeconds)
        let limits = [window, .int4(CanaryLimits.receiptsMin), .int4(CanaryLimits.sharePercent)]
        try await alone { transaction in
            try transaction.query(Queries.forgetRefusals, [window])
            try transaction.query(Queries.openIncidents, limits)
            try transaction.query(Queries.closeClockIncidents, [window])
            return try transaction.query(Queries.closeIncidents, limits).count
        }
        let apps = Dictionary(try await ledger.apps.all().map { ($0.id, $0) }) { first, _ in first }
        try await repeatedly { most, transaction in
            let receipts = try transaction.query(Queries.takeRefusalsBack, [most]).map { try $0.int8("receipt_id") }
            try coverAgain(through: receipts, apps: apps, in: transaction)
            return receipts.count
        }
        try await repeatedly { most, transaction in
            let rateLimit = [
                Parameter.float8(CanaryLimits.askAgainPerSecond), .float8(CanaryLimits.askAgainWithinSeconds),
            ]
            return try transaction.query(Queries.askRefusedAgain, [most] + rateLimit).count
        }
    }

    /// Lets receipts whose refusals were taken back poll what they hold where no able receipt polls it.
    private func coverAgain(through receipts: [Int64], apps: [Int32: App], in transaction: Transaction) throws {
        guard !receipts.isEmpty else { return }
        let uncovered = try transaction.query(Queries.findUncovered, [.int8s(receipts)])
        guard !uncovered.isEmpty else { return }
        var question = FoundPollers.Question()
        question.subscriptions = try uncovered.compactMap { try $0.int8IfPresent("subscription_id") }
        question.purchases = try uncovered.compactMap { try $0.int8IfPresent("purchase_id") }
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
