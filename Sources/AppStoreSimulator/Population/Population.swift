import Synchronization

/// The accounts of the store. Each is made from the seed and its number alone, so that none needs to be stored.
struct Population: Sendable {
    /// The most arrivals: more production accounts would have ids of the sandbox.
    static let arrivalsMax = 300_000_000
    /// The latest arrival after the epoch, in milliseconds: later than every instant that a request may name.
    private static let waitMax = 1e15

    let seed: UInt64
    let epoch: StoreTime
    let scale: TimeScale
    let customers: Int
    let sandboxCustomers: Int
    private let pastPeriodsMax: Int
    private let traits: CustomerTraits
    private let chances: PeriodChances
    private let arrivalsPerMonth: Double
    /// The number of the first arrival; arrivals are numbered above all other customers.
    let firstArrival: Int

    init(_ options: SimulatorOptions, epoch: StoreTime) {
        seed = options.seed
        self.epoch = epoch
        scale = TimeScale(monthSeconds: options.monthSeconds)
        customers = max(0, options.customers)
        sandboxCustomers = max(0, options.sandboxCustomers)
        pastPeriodsMax = max(0, options.pastPeriodsMax)
        traits = options.traits
        chances = options.chances
        arrivalsPerMonth = options.standsStill ? 0 : max(0, options.arrivalsPerMonth)
        let million = 1_000_000
        firstArrival = (1 + (customers + sandboxCustomers) / million) * million
    }

    /// The number of customers at the start: production first, then the sandbox.
    var count: Int { customers + sandboxCustomers }

    /// Returns how many customers have arrived since the epoch.
    func arrivals(at now: StoreTime) -> Int {
        guard now > epoch, arrivalsPerMonth > 0 else { return 0 }
        // Arrivals are on whole seconds. This counts at least all of them; the loop takes away who comes later.
        let months = Double(now.wholeSecond.milliseconds - epoch.milliseconds + 1) / scale.monthMilliseconds
        var count = Int(min(max(0, months) * arrivalsPerMonth, Double(Self.arrivalsMax - 1))) + 1
        while count > 0, arrival(count - 1) > now { count -= 1 }
        return count
    }

    /// Returns when an arrival buys: on a whole second, so that the purchase shows when it is made.
    private func arrival(_ number: Int) -> StoreTime {
        let wait = min(Double(number + 1) * scale.monthMilliseconds / arrivalsPerMonth, Self.waitMax)
        return (epoch + Int64(wait) + 999).wholeSecond
    }

    /// Returns a drawn customer: one of the start, or an arrival, who buys on arriving.
    func account(_ index: Int) -> Account {
        var numbers = SeededGenerator(seed: seed, stream: UInt64(index))
        var script = CustomerScript(drawnBy: &numbers, traits: traits, pastPeriodsMax: pastPeriodsMax)
        let fraction = numbers.unit()
        var further = SeededGenerator(seed: seed ^ 0x5EA5, stream: UInt64(index))
        script.drawPurchases(by: &further, traits: traits)
        var newest = SeededGenerator(seed: seed ^ 0x5EA7, stream: UInt64(index))
        script.drawPlan(by: &newest, traits: traits)
        let environment: StoreEnvironment =
            index < customers || index >= firstArrival ? .production : .sandbox
        guard index >= firstArrival else {
            return account(index, script: script, environment: environment, fraction: fraction, anchor: epoch)
        }
        script.pastPeriods = 0
        for number in script.alongside.indices { script.alongside[number].pastPeriods = 0 }
        return account(index, script: script, environment: environment, anchor: arrival(index - firstArrival))
    }

    /// Returns a customer who at `anchor` has lived the past periods of the script and this fraction of the next one.
    func account(
        _ index: Int, script: CustomerScript, environment: StoreEnvironment, fraction: Double = 0, anchor: StoreTime
    ) -> Account {
        let start = start(of: script, fraction: fraction, anchor: anchor)
        let scripts = (script.subscribes ? [script] : []) + script.alongside
        let ids = AccountIDs(index: index, environment: environment)
        let lives = scripts.enumerated().map { number, script in
            let temper = temper(of: index, number)
            var numbers = SeededGenerator(seed: temper, stream: 6)
            let own = number == 0 || fraction == 0 ? fraction : numbers.unit()
            return Life(
                script: script, start: self.start(of: script, fraction: own, anchor: anchor), scale: scale,
                environment: environment,
                drawn: DrawnSteps(temper: temper, chances: chances, mayDeleteAccount: number == 0),
                ids: ids.subscription(number))
        }
        let first = lives.map { $0.start }.min() ?? start
        return Account(
            index: index, environment: environment, script: script, start: first,
            firstReceiptCreation: script.hasRestored ? max(first, anchor.wholeSecond) : first,
            secondCustomerAt: script.secondCustomerAfterMonths.map { start + scale.milliseconds(months: max(0, $0)) },
            lives: lives,
            purchases: PurchaseHistory(
                script: script, start: start, scale: scale, temper: temper(of: index, lives.count)),
            now: first)
    }

    /// Returns when a customer began who has lived the past of the script at `anchor`.
    private func start(of script: CustomerScript, fraction: Double, anchor: StoreTime) -> StoreTime {
        let length = script.isPaidMonthly ? scale.payment : scale.length(of: script.product)
        return (anchor - length * Int64(script.pastPeriods) - Int64(Double(length) * fraction)).wholeSecond
    }

    /// Returns the seed of a subscription's own random numbers, or of an account's purchases.
    private func temper(of index: Int, _ number: Int) -> UInt64 {
        let account = SeededGenerator.mixed(seed ^ SeededGenerator.mixed(UInt64(index) &+ 0x5EED))
        return number == 0 ? account : SeededGenerator.mixed(account &+ UInt64(number))
    }
}

/// A part of the accounts behind its own lock, so that callers rarely wait for each other.
final class Shard: Sendable {
    private struct State: Sendable {
        var residents: [Int: KnownAccount] = [:]
        var keptBytes = 0

        /// Drops every kept response when there are too many bytes; later calls render theirs again.
        mutating func makeRoom(for size: Int, max: Int) {
            if keptBytes + size > max {
                for index in residents.keys {
                    residents[index]?.forgetAnswers()
                    keptBytes -= residents[index]?.takeForgottenBytes() ?? 0
                }
            }
            keptBytes += size
        }
    }

    private let state = Mutex(State())
    private let keptBytesMax: Int

    init(keptBytesMax: Int) { self.keptBytesMax = keptBytesMax }

    var keptBytes: Int { state.withLock { $0.keptBytes } }

    /// Runs `body` on an account at an instant; the account is created on its first use.
    func with<Result: Sendable, Failure: Error>(
        _ index: Int, at now: StoreTime, made: () -> Account, _ body: (inout KnownAccount) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try state.withLock { (state) throws(Failure) -> Result in
            state.residents[index, default: KnownAccount(made())].look(at: now)
            return try body(&state.residents[index, default: KnownAccount(made())])
        }
    }

    /// Returns the rendered response, and renders it when it is not kept.
    func answer(
        _ index: Int, at now: StoreTime, for key: KnownAccount.AnswerKey, made: () -> Account,
        rendered: (Account) -> RenderedAnswer
    ) -> (answer: RenderedAnswer, now: StoreTime)? {
        state.withLock { state in
            let kept = state.residents[index, default: KnownAccount(made())].answer(for: key, at: now)
            if let kept { return kept }
            state.keptBytes -= state.residents[index]?.takeForgottenBytes() ?? 0
            guard let account = state.residents[index]?.settled(), !account.isDeleted else { return nil }
            let answer = rendered(account)
            state.makeRoom(for: answer.size, max: keptBytesMax)
            state.residents[index]?.keep(answer, for: key)
            return (answer, account.now)
        }
    }
}
