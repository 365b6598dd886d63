/// What a seeded customer does in a period: drawn from the customer's own numbers, one stream a period.
struct DrawnSteps: Sendable {
    /// The customer's own seed.
    let temper: UInt64

    func steps(in period: Int, of script: CustomerScript) -> [CustomerScript.Step] {
        guard script.isDrawn else { return [] }
        var numbers = SeededGenerator(seed: temper, stream: 1000 + UInt64(period))
        if script.isFamilyShared {
            return numbers.chance(0.06) ? [step(period, numbers.between(0.1, 0.9), .revokeFamily)] : []
        }
        if period == 0, script.startsWithTrial {
            return numbers.chance(0.4) ? [step(period, numbers.between(0.2, 0.9), .disableRenewal)] : []
        }
        return paidPeriod(period, numbers: &numbers)
    }

    /// Some who lapsed come back after a while.
    func comeback(after period: Int, of script: CustomerScript, scale: TimeScale) -> Int64? {
        guard script.isDrawn, !script.isFamilyShared else { return nil }
        var numbers = SeededGenerator(seed: temper, stream: 2_000_000 + UInt64(period))
        guard numbers.chance(0.4) else { return nil }
        return max(1000, scale.milliseconds(months: numbers.between(0.3, 3)))
    }

    /// How far from the expiry the charge lies, in milliseconds; negative is before.
    func chargeOffset(in period: Int, of script: CustomerScript, scale: TimeScale) -> Int64 {
        var numbers = SeededGenerator(seed: temper, stream: 3_000_000 + UInt64(period))
        switch script.chargeHabit {
        case .early: return -Int64(Double(scale.earlyMax) * numbers.between(0.2, 1))
        case .onTime: return 0
        case .late: return Int64(Double(scale.lateMax) * numbers.between(0.2, 1))
        }
    }

    private func paidPeriod(_ period: Int, numbers: inout SeededGenerator) -> [CustomerScript.Step] {
        let draw = numbers.unit()
        let point = numbers.between(0.1, 0.8)
        switch draw {
        case ..<0.07: return [step(period, point, .disableRenewal)]
        case ..<0.11: return [step(period, point, .disableRenewal), step(period, point + 0.1, .enableRenewal)]
        case ..<0.14:
            var refund = CustomerAction(.refund)
            refund.keepsRenewal = numbers.chance(0.25)
            refund.reason = numbers.chance(0.3) ? 1 : 0
            refund.periodsAgo = period > 0 && numbers.chance(0.2) ? 1 : 0
            return [CustomerScript.Step(period: period, at: point, action: refund)]
        case ..<0.155: return [step(period, point, .refund), step(period, point + 0.15, .reverseRefund)]
        case ..<0.225:
            let failure = step(period, point, .failBilling)
            return numbers.chance(0.7)
                ? [failure, step(period, 1 + numbers.between(0.05, 1.4), .recover)] : [failure]
        case ..<0.255: return [step(period, point, .upgrade)]
        case ..<0.285: return [step(period, point, .downgrade)]
        case ..<0.3: return [step(period, point, .extend)]
        case ..<0.303: return [step(period, point, .deleteAccount)]
        default: return []
        }
    }

    private func step(_ period: Int, _ at: Double, _ kind: CustomerAction.Kind) -> CustomerScript.Step {
        CustomerScript.Step(period: period, at: at, kind)
    }
}
