import Subscriptions

/// How long a subscription's periods are, and how such customers behave: made up, but in the range of published averages.
enum PeriodKind: String, CaseIterable {
    case weekly, monthly, yearly

    var days: Int64 {
        switch self {
        case .weekly: 7
        case .monthly: 30
        case .yearly: 365
        }
    }

    /// Which part of a hundred subscribers has such periods.
    var share: Int {
        switch self {
        case .weekly: 20
        case .monthly: 50
        case .yearly: 30
        }
    }

    /// Of a hundred periods, how many the customer lets end.
    var endedByCustomer: Double {
        switch self {
        case .weekly: 5
        case .monthly: 6
        case .yearly: 25
        }
    }

    /// Of a hundred periods, after how many the charge fails at first, and how many are refunded.
    var failing: Double { 4 }
    var refunded: Double { 1 }
}

/// What is true of a subscription from an instant on, and what kind of news that is.
struct Turn {
    /// What kind of news.
    enum News: String, CaseIterable {
        case renewed, renewalOff = "renewal off", ended, failed = "charge failed", recovered, refunded
    }

    let at: Instant
    let news: News
    let outlook: Outlook
}

/// One subscription's life from some time before a simulated year to its end, drawn beforehand.
struct SimulatedLife {
    let kind: PeriodKind
    let turns: [Turn]
    /// When the customer is gone for good; another one comes in his place.
    let endsAt: Instant?

    /// A life whose first period begins at `start`; nothing is drawn beyond `until`.
    init(_ kind: PeriodKind, from start: Instant, until: Instant, using random: inout some RandomNumberGenerator) {
        self.kind = kind
        var drawn: [Turn] = []
        var head = start
        var end: Instant?
        while head < until, end == nil {
            let isLate = drawn.last?.news == .failed
            let period = DrawnPeriod(kind, from: head, isLate: isLate, using: &random)
            drawn += period.turns
            end = period.goneAt
            head = period.nextHead
        }
        turns = drawn.sorted { $0.at < $1.at }
        endsAt = end
    }

    /// What is true at an instant; nil before the first period.
    func turn(at instant: Instant) -> Turn? { turns.last { $0.at <= instant } }
}

/// One period and how it ends.
private struct DrawnPeriod {
    var turns: [Turn] = []
    var goneAt: Instant?
    var nextHead: Instant

    /// A period that begins at `start`; a late one is charged just then.
    init(_ kind: PeriodKind, from start: Instant, isLate: Bool, using random: inout some RandomNumberGenerator) {
        func part() -> Double { Double.random(in: 0..<1, using: &random) }
        let end = start + .days(kind.days)
        nextHead = end
        // Apple charges within the last day before a period ends.
        let chargedAt = isLate ? start : start - .hours(24).times(part())
        let outlook = Outlook.active(from: start, to: end, renews: true)
        turns.append(Turn(at: chargedAt, news: isLate ? .recovered : .renewed, outlook: outlook))
        let fate = part() * 100
        if fate < kind.refunded {
            let at = start + Delay.days(min(kind.days, 45)).times(part() * part())
            turns.append(Turn(at: at, news: .refunded, outlook: .over(.revoked, .refund, since: at, expiry: end)))
            goneAt = at
        } else if fate < kind.refunded + kind.endedByCustomer {
            let at = start + Delay.days(kind.days).times(part())
            turns.append(Turn(at: at, news: .renewalOff, outlook: .active(from: start, to: end, renews: false)))
            turns.append(Turn(at: end, news: .ended, outlook: .over(.expired, .voluntary, since: end, expiry: end)))
            goneAt = end
        } else if fate < kind.refunded + kind.endedByCustomer + kind.failing {
            turns.append(Turn(at: end, news: .failed, outlook: .over(.billingRetry, nil, since: end, expiry: end)))
            let late = part() * part()
            if part() < 0.6 {
                nextHead = end + Delay.days(20).times(late)
            } else {
                let at = end + .days(60)
                turns.append(
                    Turn(at: at, news: .ended, outlook: .over(.expired, .billingError, since: at, expiry: end)))
                goneAt = at
            }
        }
    }
}

extension Outlook {
    fileprivate static func active(from start: Instant, to end: Instant, renews: Bool) -> Outlook {
        Outlook(
            state: .active, reason: nil, since: start, until: end, accessEndsAt: end, expiresAt: end,
            headStartsAt: start, renewalExpected: renews)
    }

    fileprivate static func over(_ state: State, _ reason: Reason?, since: Instant, expiry: Instant) -> Outlook {
        Outlook(
            state: state, reason: reason, since: since, until: nil, accessEndsAt: nil, expiresAt: expiry,
            headStartsAt: expiry - .days(30), renewalExpected: false)
    }
}

extension Delay {
    /// A part of this delay.
    func times(_ part: Double) -> Delay { Delay(milliseconds: Int64(Double(milliseconds) * part)) }
}
