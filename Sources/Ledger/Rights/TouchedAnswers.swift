import Postgres

/// Whose remembered answers were touched by what looks told: those are looked at again before somebody asks.
struct TouchedAnswers: Sendable {
    /// Touched answers that wait, at most; of more the earliest are not looked at until somebody asks.
    static let waitingMax = 10_000

    /// The customer whose answer rests on a thing; the latest where several do, as after a merger.
    private var customers: [RightBasis: CustomerName] = [:]
    private var waiting = Fifo<CustomerName>()

    /// An answer is remembered that rests on this.
    mutating func add(_ customer: CustomerName, restingOn basis: [RightBasis]) {
        for thing in basis { customers[thing] = customer }
    }

    /// It is not remembered any more.
    mutating func remove(_ customer: CustomerName, restingOn basis: [RightBasis]) {
        for thing in basis where customers[thing] == customer { customers[thing] = nil }
    }

    /// Takes in what a look told. When everything has changed nobody is touched: that is read when it is asked for.
    mutating func note(_ changes: RightChanges) {
        if case .these(let changed) = changes.extent { changed.forEach { touch($0) } }
        changes.checks.forEach { touch($0.thing) }
    }

    private mutating func touch(_ thing: RightBasis) {
        guard let customer = customers[thing] else { return }
        waiting.append(customer)
        if waiting.count > Self.waitingMax { waiting.removeFirst() }
    }

    /// The one whose answer was touched longest ago.
    mutating func removeFirst() -> CustomerName? {
        guard let first = waiting.first else { return nil }
        waiting.removeFirst()
        return first
    }
}
