/// The actions of a seeded customer in a period, drawn from the customer's own random numbers, one stream per period.
struct DrawnSteps: Sendable {
    typealias Step = CustomerScript.Step

    /// The subscription's own seed.
    let temper: UInt64
    let chances: PeriodChances
    /// Whether a step may delete the account: only the first subscription of an account decides that.
    let mayDeleteAccount: Bool

    func steps(in period: Int, of script: CustomerScript) -> [Step] {
        guard script.isDrawn else { return [] }
        var numbers = SeededGenerator(seed: temper, stream: 1000 + UInt64(period))
        if script.isMember {
            guard numbers.chance(chances.revocations) else { return [] }
            return [step(period, numbers.between(0.1, 0.9), script.isAssigned ? .revokeSeat : .revokeFamily)]
        }
        if period == 0, script.startOffer == .freeTrial {
            return numbers.chance(0.4) ? [step(period, numbers.between(0.2, 0.9), .disableRenewal)] : []
        }
        return paidPeriod(period, of: script, numbers: &numbers)
    }

    /// Returns the comeback of a lapsed customer. Some customers come back after a while, a few of them for an offer.
    func comeback(
        after period: Int, of script: CustomerScript, scale: TimeScale
    ) -> (delay: Int64, action: CustomerAction)? {
        guard script.isDrawn, !script.isMember else { return nil }
        var numbers = SeededGenerator(seed: temper, stream: 2_000_000 + UInt64(period))
        guard numbers.chance(chances.comebacks) else { return nil }
        let delay = max(1000, scale.milliseconds(months: numbers.between(0.3, 3)))
        guard numbers.chance(0.25) else { return (delay, CustomerAction(.resubscribe)) }
        return (delay, redemption(&numbers))
    }

    /// Returns the distance of the charge from the expiry, in milliseconds; negative is before it.
    func chargeOffset(in period: Int, of script: CustomerScript, scale: TimeScale) -> Int64 {
        var numbers = SeededGenerator(seed: temper, stream: 3_000_000 + UInt64(period))
        switch script.chargeHabit {
        case .early: return -Int64(Double(scale.earlyMax) * numbers.between(0.2, 1))
        case .onTime: return 0
        case .late: return Int64(Double(scale.lateMax) * numbers.between(0.2, 1))
        }
    }

    /// The possible events of a paid period. The random numbers each draws must not depend on earlier results.
    private enum PeriodOutcome: CaseIterable {
        case cancels, wavers, refund, olderRefund, refundReversal, billingFailure, upgrade, downgrade, crossgrade
        case extend, priceIncrease, withdrawal, unexplainedEnd, redeemedOffer, accountDeletion
        case planSwitch, seatAddition, seatReduction, seatRefund
    }

    private func chance(of turning: PeriodOutcome, for script: CustomerScript) -> Double {
        switch turning {
        case .cancels: chances.cancels
        case .wavers: chances.wavers
        case .refund: chances.refunds
        case .olderRefund: chances.olderRefunds
        case .refundReversal: chances.refundReversals
        case .billingFailure: chances.billingFailures
        case .upgrade: chances.upgrades
        case .downgrade: chances.downgrades
        case .crossgrade: chances.crossgrades
        case .extend: chances.extensions
        case .priceIncrease: chances.priceIncreases
        case .withdrawal: chances.withdrawals
        case .unexplainedEnd: chances.unexplainedEnds
        case .redeemedOffer: chances.redeemedOffers
        case .accountDeletion: mayDeleteAccount ? chances.accountDeletions : 0
        case .planSwitch: script.isPaidMonthly ? chances.planSwitches : 0
        case .seatAddition: script.seats == nil ? 0 : chances.seatAdditions
        case .seatReduction: script.seats == nil ? 0 : chances.seatReductions
        case .seatRefund: script.seats == nil ? 0 : chances.seatRefunds
        }
    }

    private func paidPeriod(
        _ period: Int, of script: CustomerScript, numbers: inout SeededGenerator
    ) -> [Step] {
        var draw = numbers.unit()
        let point = numbers.between(0.1, 0.8)
        for turning in PeriodOutcome.allCases {
            let share = chance(of: turning, for: script)
            guard draw >= share else { return steps(of: turning, in: period, at: point, numbers: &numbers) }
            draw -= share
        }
        return []
    }

    private func steps(
        of turning: PeriodOutcome, in period: Int, at point: Double, numbers: inout SeededGenerator
    ) -> [Step] {
        switch turning {
        case .cancels: return [step(period, point, .disableRenewal)]
        case .wavers: return [step(period, point, .disableRenewal), step(period, point + 0.1, .enableRenewal)]
        case .refund, .olderRefund:
            var refund = CustomerAction(.refund)
            refund.keepsRenewal = numbers.chance(0.25)
            refund.reason = numbers.chance(0.3) ? 1 : 0
            refund.periodsAgo = turning == .olderRefund && period > 0 ? 1 : 0
            return [Step(period: period, at: point, action: refund)]
        case .refundReversal: return [step(period, point, .refund), step(period, point + 0.15, .reverseRefund)]
        case .billingFailure:
            let failure = step(period, point, .failBilling)
            guard numbers.chance(chances.recoveries) else { return [failure] }
            return [failure, step(period, 1 + numbers.between(0.05, 1.4), .recover)]
        case .upgrade: return [step(period, point, .upgrade)]
        case .downgrade: return [step(period, point, .downgrade)]
        case .crossgrade: return [step(period, point, .crossgrade)]
        case .extend: return [step(period, point, .extend)]
        case .priceIncrease:
            let question = step(period, point, .raisePrice)
            return numbers.chance(chances.priceConsents)
                ? [question, step(period, point + 0.15, .acceptPrice)] : [question]
        case .withdrawal: return [step(period, point, .withdrawProduct)]
        case .unexplainedEnd: return [step(period, point, .breakOff)]
        case .redeemedOffer: return [Step(period: period, at: point, action: redemption(&numbers))]
        case .accountDeletion: return [step(period, point, .deleteAccount)]
        case .planSwitch: return [step(period, point, .switchPlan)]
        case .seatAddition: return [seats(period, point, .addSeats, 1 + numbers.below(9))]
        case .seatReduction: return [seats(period, point, .reduceSeats, 1 + numbers.below(2))]
        case .seatRefund: return [seats(period, point, .refundSeats, 1 + numbers.below(2))]
        }
    }

    private func redemption(_ numbers: inout SeededGenerator) -> CustomerAction {
        var action = CustomerAction(.redeemOffer)
        action.offer = numbers.chance(0.5) ? .promotional : .offerCode
        return action
    }

    private func seats(_ period: Int, _ at: Double, _ kind: CustomerAction.Kind, _ count: Int) -> Step {
        var action = CustomerAction(kind)
        action.seats = count
        return Step(period: period, at: at, action: action)
    }

    private func step(_ period: Int, _ at: Double, _ kind: CustomerAction.Kind) -> Step {
        Step(period: period, at: at, kind)
    }
}
