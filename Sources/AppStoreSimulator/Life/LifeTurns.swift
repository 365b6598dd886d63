/// What comes by itself: charges, lapses, the ends of grace and retry, and the script's next step.
extension Life {
    enum Turn: Sendable {
        case charge(at: Moment)
        case lapse(at: Moment)
        case graceEnd(at: Moment)
        case retryEnd(at: Moment)
        case step(at: Moment)

        var at: Moment {
            switch self {
            case .charge(let at), .lapse(let at), .graceEnd(let at), .retryEnd(let at), .step(let at): at
            }
        }
    }

    /// The earliest thing that has not happened. What is overdue happens now, never in the past.
    var nextTurn: Turn? {
        guard !accountIsDeleted else { return nil }
        let step = steps.first.map { Turn.step(at: max($0.at, now)) }
        guard let own = phaseTurn else { return step }
        guard let step, step.at < own.at else { return own }
        return step
    }

    mutating func perform(_ turn: Turn) {
        switch turn {
        case .charge: charge()
        case .lapse:
            record(.lapsed, period: periods.last?.ordinal, intent: 1)
            end(intent: 1)
        case .graceEnd:
            guard case .retrying(let graceUntil, _, let until) = phase else { return }
            phase = .retrying(graceUntil: graceUntil, graceIsOver: true, until: until)
            record(.graceEnded, period: periods.last?.ordinal)
        case .retryEnd:
            guard case .retrying(let graceUntil, _, _) = phase else { return }
            record(.lapsed, period: periods.last?.ordinal, intent: 2)
            end(intent: 2, graceUntil: graceUntil)
        case .step:
            let step = steps.removeFirst()
            do {
                try apply(step.action)
            } catch {
                // The life took another way than the script expected; the step has no meaning any more.
            }
        }
    }

    /// Whether the store will try to charge at the end of the period.
    var willRenew: Bool {
        guard renewalIsOn, periods.count < Life.periodsMax else { return false }
        switch environment {
        case .sandbox: return renewals < Life.sandboxRenewalsMax
        case .production: return true
        }
    }

    private var phaseTurn: Turn? {
        guard let head = periods.last else { return nil }
        switch phase {
        case .subscribed:
            guard willRenew else { return .lapse(at: max(head.expires, now)) }
            // A failing card is tried early too, but the failure only shows once the period is over.
            let offset = cardFails ? 0 : drawn.chargeOffset(in: head.ordinal, of: script, scale: scale)
            return .charge(at: max(head.expires + offset, now))
        case .retrying(let graceUntil, let graceIsOver, let until):
            guard let graceUntil, !graceIsOver else { return .retryEnd(at: max(until, now)) }
            return .graceEnd(at: max(graceUntil, now))
        case .ended: return nil
        }
    }

    private mutating func charge() {
        guard let head = periods.last else { return }
        guard !cardFails else { return startRetry(after: head) }
        renewals += 1
        let kind: HappeningKind =
            head.isTrial ? .converted : nextProduct == head.product ? .renewed : .changedAtRenewal
        book(nextProduct, purchase: head.expires, isTrial: false, as: kind)
    }

    private mutating func startRetry(after head: Period) {
        let graceUntil = script.hasGrace ? head.expires + scale.grace(for: head.product) : nil
        phase = .retrying(graceUntil: graceUntil, graceIsOver: false, until: head.expires + scale.retry)
        record(.billingFailed, period: head.ordinal)
        if graceUntil != nil { record(.graceStarted, period: head.ordinal) }
    }
}
