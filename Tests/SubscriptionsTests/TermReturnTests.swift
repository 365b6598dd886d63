import SeededRandom
import Testing

@testable import Subscriptions

/// A life of payments with gaps, made by a seed: terms one after another, years paid at once, plain months.
private struct TermLife {
    /// Why a gap follows a month.
    enum Gap: Equatable { case late, gaveUp, boughtMeanwhile, voluntary }

    struct Month {
        let row: TransactionRow
        let end: Double
        /// What follows it; nil: the next one, at once.
        var gap: Gap?
        /// The day on which the next one begins.
        var next: Double
    }

    /// A failed payment of a term is tried for 90 days, another one for 60.
    let tries: Double
    private let total: Int?
    private(set) var months: [Month] = []

    init(using random: inout Seeded) {
        total = Int.random(in: 0..<5, using: &random) == 0 ? nil : Int.random(in: 2...6, using: &random)
        tries = total == nil ? 60 : 90
        var (start, number, product) = (0.0, 1, "yearly" as ProductID)
        for index in 0..<Int.random(in: 2...18, using: &random) {
            let isUpfront = number == 1 && Int.random(in: 0..<6, using: &random) == 0
            var row = row("\(index)", start, start + 30, product: product)
            row.sale = total.map { total in
                let payment = Sale.Payment(number: number, total: total, termEndsAt: day(start + 360))
                return isUpfront ? Sale(plan: Sale.upfront) : Sale(plan: Sale.monthly, payment: payment)
            }
            var month = Month(row: row, end: start + 30, next: start + 30)
            let isOver = isUpfront || number == total
            switch Int.random(in: 0..<4, using: &random) {
            case 0 where isOver: month.gap = .voluntary
            case 0: month.gap = [.late, .gaveUp, .boughtMeanwhile].randomElement(using: &random)
            default: break
            }
            switch month.gap {
            case .late, .boughtMeanwhile: month.next += Double.random(in: 0.5..<tries, using: &random)
            case .gaveUp: month.next += tries + Double.random(in: 0.5...60, using: &random)
            case .voluntary: month.next += Double.random(in: 0.5...150, using: &random)
            case nil: break
            }
            number = isOver || month.gap.map { $0 != .late } ?? false ? 1 : number + 1
            if number == 1, Int.random(in: 0..<4, using: &random) == 0 {
                product = product == "yearly" ? "y2" : "yearly"
            }
            start = month.next
            months.append(month)
        }
    }

    /// The end of the life.
    var end: Double { months.last?.next ?? 0 }

    /// Apple's answer on a day.
    func answer(at asOf: Double) -> SubscriptionEvidence {
        let begun = months.filter { day(asOf) >= $0.row.purchasedAt }
        guard let last = begun.last else { return SubscriptionsTests.answer(asOf, []) }
        var said = renewal(product: last.row.productID)
        if asOf >= last.end, last.gap == .voluntary {
            (said.willRenew, said.expirationIntent, said.inBillingRetry) = (false, "1", false)
        } else if asOf >= last.end {
            (said.expirationIntent, said.inBillingRetry) = ("2", asOf < last.end + tries)
        }
        said.term =
            last.row.sale?.payment.map { _ in TermWill(renews: true, productID: last.row.productID) } ?? TermWill()
        return SubscriptionsTests.answer(asOf, begun.map(\.row), said)
    }

    /// What is true of the gap after a month, by the answers of these days: what was stated last within it, if the next
    /// payment of the same term does not tell.
    func words(after month: Month, answers: [Double]) -> String? {
        guard let newest = answers.last, newest >= month.end, let gap = month.gap else { return nil }
        if gap == .late, total != nil, newest >= month.next { return "billing_retry" }
        guard let stated = answers.last(where: { month.end <= $0 && $0 < month.next }) else { return "expired/unknown" }
        if gap == .voluntary { return "expired/voluntary" }
        return stated < month.end + tries ? "billing_retry" : "expired/billing_error"
    }
}

@Suite("What was said of the end of a term stays when the customer returns") struct TermReturnTests {
    private func words(_ span: Span?) -> String {
        (span?.state.rawValue ?? "") + (span?.reason.map { "/\($0.rawValue)" } ?? "")
    }

    private func month(_ number: Int?, _ from: Double, plan: String = Sale.monthly, name: String = "") -> TransactionRow
    {
        var row = row("\(name)\(from)", from, from + 30, product: "yearly")
        let payment = number.map { Sale.Payment(number: $0, total: 12, termEndsAt: day(from + 360)) }
        row.sale = Sale(plan: plan, payment: payment)
        return row
    }

    private func term(_ numbers: ClosedRange<Int>, from start: Double) -> [TransactionRow] {
        numbers.map { month($0, start + 30 * Double($0 - numbers.lowerBound)) }
    }

    private func said(_ retry: Bool? = nil) -> Renewal {
        renewal(product: "yearly", intent: retry.map { _ in "2" }, retry: retry)
    }

    @Test("A payment that Apple gave up stays unpaid when another term reaches the number after it", arguments: 1...11)
    func givenUp(number: Int) {
        let end = 30 * Double(number)
        let old = term(1...number, from: 0)
        let before = [
            answer(end - 10, old, said()), answer(end + 1, old, said(true)), answer(end + 90, old, said(false)),
        ]
        let (givenUp, events) = settle(before)
        #expect(kinds(events).last == "subscription.expired auto_renew.disabled")
        #expect(words(givenUp?.timeline.span(at: day(end + 50))) == "expired/billing_error")
        let back = end + 110
        for upfront in [false, true] {
            let first = upfront ? [month(nil, back, plan: Sale.upfront)] : []
            let rows = old + first + term(1...12, from: back + 30 * Double(first.count))
            for months in 1...12 {
                let shown = Array(rows.prefix(number + months))
                let now = back + 30 * Double(months) - 1
                let (state, later) = settle(before + [answer(now, shown, said())])
                #expect(kinds(later).last?.contains("subscription.reactivated") == true)
                #expect(!kinds(later).joined().contains("recovered"))
                let span = state?.timeline.span(at: day(end + 50))
                #expect(words(span) == "expired/billing_error", "\(number), \(months) months later")
                #expect(span?.from == day(end) && span?.to == day(back))
            }
        }
    }

    @Test("A return without a word about the end proves no retry, by whatever number the term that follows reaches")
    func unseen() {
        let old = term(1...3, from: 0)
        for (gap, retried) in [(20.0, nil), (20, true), (93, nil), (93, true), (110, nil)] as [(Double, Bool?)] {
            let rows = old + term(1...6, from: 90 + gap)
            let now = answer(90 + gap + 170, rows, said())
            for story in [
                [answer(80, old, said()), now], [answer(80, old, said()), answer(91, old, said(retried)), now],
            ] {
                let isSeen = retried == true && story.count == 3
                let span = settle(story).state?.timeline.span(at: day(90 + gap / 2))
                #expect(words(span) == (isSeen ? "billing_retry" : "expired/unknown"), "\(gap), \(isSeen)")
            }
        }
    }

    @Test("Transactions of a group, and what never began, stand between no two payments")
    func between() {
        let old = term(1...3, from: 0)
        var seats = month(3, 70, name: "seats")
        seats.expiresAt = day(90)
        seats.sale?.isOneOfSeveral = true
        var gone = month(1, 95, name: "gone")
        gone.cancelledAt = day(94)
        let next = [month(4, 100), month(4, 100, name: "more")]
        let story = [answer(80, old + [seats], said()), answer(101, old + [seats, gone] + next, said())]
        #expect(words(settle(story).state?.timeline.span(at: day(93))) == "billing_retry")
    }

    @Test("Every gap goes on saying what was stated of it last")
    func gaps() {
        var probes: [String: Int] = [:]
        for offset in 0..<600 as Range<UInt64> {
            var random = Seeded(seed: 31_000_000 + offset)
            let life = TermLife(using: &random)
            var days = (0..<Int.random(in: 1...12, using: &random)).map { _ in
                Double.random(in: 0...life.end, using: &random)
            }
            // Answers within gaps, early and late.
            for month in life.months where month.gap != nil && Bool.random(using: &random) {
                days.append(Double.random(in: month.end..<month.next, using: &random))
                days.append(month.next - 0.01)
            }
            days.sort()
            var state: SubscriptionState?
            for (index, now) in days.enumerated() {
                state = reconcile(state, with: life.answer(at: now), policy: strictPolicy).state
                for month in life.months where month.end < now {
                    guard let expected = life.words(after: month, answers: Array(days[...index])) else { continue }
                    let until = min(month.next, now)
                    for probe in [month.end, (month.end + until) / 2, until - 0.001] where probe >= month.end {
                        let found = words(state?.timeline.span(at: day(probe)))
                        #expect(found == expected, "day \(probe) as of \(now), \(random)")
                        probes[expected, default: 0] += 1
                    }
                }
            }
            let shuffled = settle(days.map(life.answer).shuffled(using: &random), policy: strictPolicy).state
            #expect(shuffled?.timeline == state?.timeline, "\(random)")
        }
        #expect(probes.count == 4 && probes.values.allSatisfy { $0 > 500 }, "\(probes)")
    }
}
