import Subscriptions

/// What is true of a subscription from an instant on, and what kind of news that is.
struct Turn {
    /// What kind of news.
    enum News: String, CaseIterable {
        case renewed, renewedLate = "renewed late", renewalOff = "renewal off", ended, failed = "charge failed"
        case recovered, givenUp = "charge given up", refunded

        /// Whether it says how the end of a period came out, just when the period ends.
        var isOutcome: Bool {
            switch self {
            case .renewed, .ended, .failed: true
            case .renewedLate, .renewalOff, .recovered, .givenUp, .refunded: false
            }
        }

        /// Whether Apple's history of transactions has it.
        var isTransaction: Bool {
            switch self {
            case .renewed, .renewedLate, .recovered, .refunded: true
            case .renewalOff, .ended, .failed, .givenUp: false
            }
        }
    }

    let at: Instant
    /// Nil where nothing happened but that time passed.
    let news: News?
    let input: ScheduleInput
}

/// One subscription's life from its purchase to its end, drawn beforehand.
struct SimulatedLife {
    let kind: PeriodKind
    let turns: [Turn]
    /// When the customer's device sends a receipt that was not there before: after the purchase and after each renewal.
    let uploads: [Instant]
    /// When the customer is gone for good; another one comes in his place.
    let endsAt: Instant?

    /// A life whose first period begins at `start`; nothing is drawn beyond `until`.
    init(_ kind: PeriodKind, from start: Instant, until: Instant, using random: inout some RandomNumberGenerator) {
        self.kind = kind
        var drawn: [Turn] = []
        var sent: [Instant] = []
        var next: (head: Instant, charge: DrawnPeriod.Charge)? = (start, .first)
        var end: Instant?
        while let (head, charge) = next, head < until {
            let period = DrawnPeriod(kind, from: head, charge, using: &random)
            drawn += period.turns
            sent.append(period.uploadedAt)
            end = period.goneAt
            next = period.next
        }
        turns = drawn.sorted { $0.at < $1.at }
        uploads = sent
        endsAt = end
    }

    /// A life in which every charge goes through and no receipt is sent but the first.
    init(undisturbed kind: PeriodKind, from start: Instant, days: Int64) {
        self.kind = kind
        endsAt = nil
        uploads = [start]
        turns = (0...(days / kind.days + 1)).map { number in
            let head = start + .days(number * kind.days)
            return Turn(
                at: number == 0 ? head : head - .hours(6), news: .renewed,
                input: .active(from: head, to: head + .days(kind.days), renews: true))
        }
    }
}

/// One period and how it ends.
private struct DrawnPeriod {
    /// How it came to be charged.
    enum Charge {
        case first, inTime, late, afterFailure
    }

    var turns: [Turn] = []
    let uploadedAt: Instant
    var goneAt: Instant?
    var next: (head: Instant, charge: Charge)?

    private let kind: PeriodKind
    /// When it begins, when it is charged if that is later, and when it ends.
    private let start: Instant
    private let paidAt: Instant
    private let end: Instant

    init(
        _ kind: PeriodKind, from start: Instant, _ charge: Charge, using random: inout some RandomNumberGenerator
    ) {
        func part() -> Double { Double.random(in: 0..<1, using: &random) }
        (self.kind, self.start, end) = (kind, start, start + .days(kind.days))
        let input = ScheduleInput.active(from: start, to: end, renews: true)
        switch charge {
        case .first:
            turns.append(Turn(at: start, news: nil, input: input))
        case .inTime:
            // Apple charges within the last day before a period ends.
            turns.append(Turn(at: start - Delay.hours(24).times(part()), news: .renewed, input: input))
        case .late:
            turns.append(Turn(at: start + Delay.hours(1).times(part()), news: .renewedLate, input: input))
        case .afterFailure:
            turns.append(Turn(at: start, news: .recovered, input: input))
        }
        // The device learns of a renewal when the customer next opens the app.
        paidAt = max(start, turns[0].at)
        uploadedAt = charge == .first ? start : paidAt + Delay.days(2).times(part())
        drawEnd(part)
    }

    private mutating func drawEnd(_ part: () -> Double) {
        var fate = part() * 100
        func falls(on percent: Double) -> Bool {
            fate -= percent
            return fate < 0
        }
        if falls(on: kind.refunded) {
            let at = paidAt + min(end - paidAt, .days(45)).times(part() * part())
            turns.append(Turn(at: at, news: .refunded, input: .over(.revoked, .refund, since: at, expiry: end)))
            goneAt = at
        } else if falls(on: kind.endedByCustomer) {
            let at = paidAt + (end - paidAt).times(part())
            turns.append(Turn(at: at, news: .renewalOff, input: .active(from: start, to: end, renews: false)))
            turns.append(Turn(at: end, news: .ended, input: .over(.expired, .voluntary, since: end, expiry: end)))
            goneAt = end
        } else if falls(on: kind.failing) {
            turns.append(Turn(at: end, news: .failed, input: .over(.billingRetry, nil, since: end, expiry: end)))
            let late = part() * part()
            if part() < 0.6 {
                next = (end + Delay.days(20).times(late), .afterFailure)
            } else {
                let at = end + .days(60)
                turns.append(
                    Turn(at: at, news: .givenUp, input: .over(.expired, .billingError, since: at, expiry: end)))
                goneAt = at
            }
        } else if falls(on: kind.late) {
            turns.append(Turn(at: end, news: nil, input: .awaiting(since: end, from: start)))
            next = (end, .late)
        } else {
            next = (end, .inTime)
        }
    }
}

extension ScheduleInput {
    fileprivate static func active(from start: Instant, to end: Instant, renews: Bool) -> ScheduleInput {
        ScheduleInput(
            state: .active, reason: nil, since: start, until: end, accessEndsAt: end, expiresAt: end,
            headStartsAt: start, renewalExpected: renews)
    }

    fileprivate static func awaiting(since end: Instant, from start: Instant) -> ScheduleInput {
        ScheduleInput(
            state: .awaitingRenewal, reason: .renewal, since: end, until: end + .hours(2),
            accessEndsAt: end + .hours(2), expiresAt: end, headStartsAt: start, renewalExpected: true)
    }

    fileprivate static func over(_ state: State, _ reason: Reason?, since: Instant, expiry: Instant) -> ScheduleInput {
        ScheduleInput(
            state: state, reason: reason, since: since, until: nil, accessEndsAt: nil, expiresAt: expiry,
            headStartsAt: expiry - .days(30), renewalExpected: false, isRenewalOff: state == .revoked)
    }
}

extension Delay {
    /// A part of this delay.
    func times(_ part: Double) -> Delay { Delay(milliseconds: Int64(Double(milliseconds) * part)) }
}
