/// Makes customer number so-and-so from the seed alone, so that nobody has to be stored to be found again.
struct Population: Sendable {
    let seed: UInt64
    let epoch: Moment
    let scale: TimeScale
    let pastPeriodsMax: Int
    let customers: Int
    let sandboxCustomers: Int

    /// Production customers come first, then the sandbox's.
    var count: Int { customers + sandboxCustomers }

    func customer(_ index: Int) -> Customer {
        var numbers = SeededGenerator(seed: seed, stream: UInt64(index))
        let script = drawScript(&numbers)
        return make(
            index: index, environment: index < customers ? .production : .sandbox, script: script,
            fraction: numbers.unit(), anchor: epoch)
    }

    /// A customer made by hand, who buys so that `anchor` is the start of the running period.
    func customer(
        _ index: Int, script: CustomerScript, environment: StoreEnvironment, anchor: Moment
    ) -> Customer {
        make(index: index, environment: environment, script: script, fraction: 0, anchor: anchor)
    }

    private func make(
        index: Int, environment: StoreEnvironment, script: CustomerScript, fraction: Double, anchor: Moment
    ) -> Customer {
        let length = scale.length(of: script.product)
        let start = (anchor - length * Int64(script.pastPeriods) - Int64(Double(length) * fraction)).wholeSecond
        let temper = SeededGenerator.mixed(seed ^ SeededGenerator.mixed(UInt64(index) &+ 0x5EED))
        let life = Life(script: script, start: start, scale: scale, environment: environment, temper: temper)
        return Customer(
            index: index, environment: environment, life: life,
            lifetime: script.ownsLifetime ? Customer.Lifetime(purchase: start) : nil,
            receiptCreation: script.hasRestored ? max(start, anchor.wholeSecond) : start)
    }

    private func drawScript(_ numbers: inout SeededGenerator) -> CustomerScript {
        var script = CustomerScript()
        script.isDrawn = true
        script.product = drawProduct(numbers.unit())
        script.startsWithTrial = numbers.chance(0.3)
        script.hasGrace = numbers.chance(0.5)
        script.isFamilyShared = numbers.chance(0.04)
        script.ownsLifetime = numbers.chance(0.08)
        script.hasRestored = numbers.chance(0.15)
        script.chargeHabit = drawHabit(numbers.unit())
        script.pastPeriods = numbers.below(pastPeriodsMax + 1)
        if script.isFamilyShared { script.startsWithTrial = false }
        return script
    }

    private func drawProduct(_ draw: Double) -> SubscriptionProduct {
        switch draw {
        case ..<0.6: .monthly
        case ..<0.75: .plusMonthly
        case ..<0.9: .weekly
        default: .yearly
        }
    }

    private func drawHabit(_ draw: Double) -> CustomerScript.ChargeHabit {
        switch draw {
        case ..<0.25: .early
        case ..<0.9: .onTime
        default: .late
        }
    }
}
