/// The automatic turns: charges, lapses, the ends of grace and retry, and the script's next step.
extension Life {
    enum Turn: Sendable {
        case charge(at: StoreTime)
        case lapse(at: StoreTime, intent: Int)
        case graceEnd(at: StoreTime)
        case retryEnd(at: StoreTime)
        case step(at: StoreTime)

        var at: StoreTime {
            switch self {
            case .charge(let at), .lapse(let at, _), .graceEnd(let at), .retryEnd(let at), .step(let at): at
            }
        }
    }

    /// The earliest pending turn. An overdue turn happens now, never in the past.
    var nextTurn: Turn? {
        guard accountDeletedAt == nil else { return nil }
        let step = steps.first.map { Turn.step(at: max($0.at, now)) }
        guard let own = phaseTurn else { return step }
        guard let step, step.at < own.at else { return own }
        return step
    }

    mutating func perform(_ turn: Turn) {
        switch turn {
        case .charge: charge()
        case .lapse(_, let intent):
            record(.lapsed, period: periods.last?.ordinal, intent: intent)
            end(intent: intent)
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
                // The life took another course than the script expected, so the step has no meaning now.
            }
        }
    }

    /// Apple's expiration intent for a lapse at the end of the period; nil when the store will try to charge.
    var intentOfNextLapse: Int? {
        guard periods.count < Life.periodsMax else { return 1 }
        switch environment {
        case .sandbox: if renewals >= Life.sandboxRenewalsMax { return 1 }
        case .production: break
        }
        guard !owesPayment else { return nil }
        guard renewalIsOn else { return 1 }
        switch priceConsent {
        case .asked: return 3
        case .given, nil: return obstacle
        }
    }

    private var phaseTurn: Turn? {
        guard let head = periods.last else { return nil }
        switch phase {
        case .subscribed:
            if let intent = intentOfNextLapse { return .lapse(at: max(head.expires, now), intent: intent) }
            // A charge of a failing card is attempted early too, but the failure shows only after the period.
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
        let product = nextPaidProduct
        let kind: LifeEventKind =
            head.isTrial ? .converted : product == head.product ? .renewed : .changedAtRenewal
        book(product, purchase: head.expires, as: kind)
    }

    private mutating func startRetry(after head: Period) {
        // A term has no grace period, and a longer retry.
        let hasGrace = script.hasGrace && head.payment == nil
        let graceUntil = hasGrace ? head.expires + scale.grace(for: head.product) : nil
        let retry = head.payment == nil ? scale.retry : scale.paymentRetry
        phase = .retrying(graceUntil: graceUntil, graceIsOver: false, until: head.expires + retry)
        record(.billingFailed, period: head.ordinal)
        if graceUntil != nil { record(.graceStarted, period: head.ordinal) }
    }
}
