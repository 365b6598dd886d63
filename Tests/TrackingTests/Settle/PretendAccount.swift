import SeededRandom

@testable import Subscriptions

/// An Apple account that buys one subscription again and again, and perhaps something for good. Its whole life is decided in
/// the beginning; the App Store tells of it what has happened by the moment of the question.
struct PretendAccount: Sendable {
    /// One paid month.
    struct Period: Sendable {
        let start: Instant
        let end: Instant
        var refundedAt: Instant?
        /// Why no other period follows at once; nil where one does.
        var ending: Ending?
    }

    enum Ending: Sendable {
        case turnedOff(Instant)
        /// Apple cannot charge, and tries for 60 days.
        case declined
    }

    let id: OriginalTransactionID
    private(set) var periods: [Period] = []
    /// When something was bought for good.
    let boughtAt: Instant?

    private static let retryLasts = Delay.days(60)
    /// Between the end of one run of periods and the next purchase, in days: minutes to two years.
    private static let gaps = [0.002, 0.1, 3, 40, 100, 380, 730]

    /// A life that last begins anew at most `days` before `now`.
    init(_ number: Int, days: Double, now: Instant, using random: inout Seeded) {
        id = OriginalTransactionID("s\(number)")
        boughtAt = Bool.random(using: &random) ? now.before(days: .random(in: 0...120, using: &random)) : nil
        var start = now.before(days: .random(in: 0...days, using: &random))
        let goesOn = Bool.random(using: &random)
        let months = goesOn ? Int(days / 30) + 3 : Int.random(in: 1...3, using: &random)
        if !goesOn { start = start.before(days: 30 * Double(months)) }
        addRun(from: start, months: months, using: &random)
        if goesOn { periods[periods.count - 1].refundedAt = nil }
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            let months = Int.random(in: 1...4, using: &random)
            let gap = Self.gaps.randomElement(using: &random) ?? 1
            start = start.before(days: gap + 30 * Double(months))
            addRun(from: start, months: months, using: &random)
        }
        periods.sort { $0.start < $1.start }
    }

    private mutating func addRun(from start: Instant, months: Int, using random: inout Seeded) {
        for index in 0..<months {
            let begin = start + .days(Int64(30 * index))
            periods.append(Period(start: begin, end: begin + .days(30)))
        }
        let last = periods.count - 1
        let isDeclined = Int.random(in: 0..<3, using: &random) == 0
        let turnedOff = periods[last].end.before(days: .random(in: 0...30, using: &random))
        periods[last].ending = isDeclined ? .declined : .turnedOff(turnedOff)
        if Int.random(in: 0..<6, using: &random) == 0 {
            periods[last].refundedAt = periods[last].start.before(days: .random(in: -40...0, using: &random))
        }
    }

    /// Whether a period is paid and not refunded.
    func isRunning(at moment: Instant) -> Bool {
        periods.contains { $0.start <= moment && moment < $0.end && ($0.refundedAt.map { moment < $0 } ?? true) }
    }

    /// The rows of an answer at a moment; `omits` leaves the subscription out.
    func tell(at moment: Instant, omits: Bool, in evidence: inout Evidence) {
        if let boughtAt, boughtAt <= moment { evidence.transactions.append(purchaseRow(boughtAt, asOf: moment)) }
        let known = omits ? [] : periods.filter { $0.start <= moment }
        guard let last = known.last else { return }
        for (index, period) in known.enumerated() {
            evidence.transactions.append(row(index, of: period, firstAt: known[0].start, asOf: moment))
        }
        evidence.renewals.append(renewal(after: last, asOf: moment))
    }

    private func row(_ index: Int, of period: Period, firstAt: Instant, asOf: Instant) -> TransactionRow {
        let refundedAt = period.refundedAt.flatMap { $0 <= asOf ? $0 : nil }
        var row = TransactionRow(
            path: "latest_receipt_info[\(index)]", source: .latestReceiptInfo, asOf: asOf,
            transactionID: TransactionID("\(id)-\(index)"), originalTransactionID: id,
            webOrderLineItemID: WebOrderLineItemID("\(id)-\(index)"), productID: "monthly", purchasedAt: period.start,
            expiresAt: period.end, cancelledAt: refundedAt, cancellationReason: refundedAt.map { _ in "1" })
        (row.originalPurchasedAt, row.isTrial, row.groupID) = (firstAt, false, "group")
        row.ownership = .purchased
        return row
    }

    private func purchaseRow(_ boughtAt: Instant, asOf: Instant) -> TransactionRow {
        TransactionRow(
            path: "latest_receipt_info[99]", source: .latestReceiptInfo, asOf: asOf,
            transactionID: TransactionID("\(id)-coins"),
            originalTransactionID: OriginalTransactionID("\(id)-coins"), productID: "coins", purchasedAt: boughtAt)
    }

    private func renewal(after last: Period, asOf: Instant) -> RenewalRow {
        let isRefunded = last.refundedAt.map { $0 <= asOf } ?? false
        let isOver = last.end <= asOf
        var (willRenew, intent, inRetry): (Bool, String?, Bool?) = (true, nil, nil)
        switch last.ending {
        case nil: willRenew = !isRefunded
        case .turnedOff(let moment):
            willRenew = !isRefunded && asOf < moment
            intent = isOver ? "1" : nil
        case .declined:
            willRenew = !isRefunded
            if isOver { (intent, inRetry) = ("2", !isRefunded && asOf < last.end + Self.retryLasts) }
        }
        return RenewalRow(
            path: "pending_renewal_info[0]", asOf: asOf, originalTransactionID: id,
            renewal: Renewal(
                productID: "monthly", renewsToProductID: "monthly", willRenew: willRenew, expirationIntent: intent,
                inBillingRetry: inRetry))
    }
}

extension Instant {
    /// The instant so many days earlier; later where that is negative.
    func before(days: Double) -> Instant { self + Delay(milliseconds: -Int64(days * 86_400_000)) }
}
