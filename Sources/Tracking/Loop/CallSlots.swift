import Ledger

/// A limit on the receipts that one process has claimed and not yet settled.
actor CallSlots {
    /// The number of slots.
    let capacity: Int
    private var free: Int
    private var waiting: (atLeast: Int, turn: CheckedContinuation<Void, Never>)?

    init(capacity: Int) {
        self.capacity = capacity
        free = capacity
    }

    /// Takes up to `atMost` slots as soon as `atLeast` are free. One caller at a time.
    func take(atLeast: Int, atMost: Int) async -> Int {
        if free < atLeast {
            await withCheckedContinuation { waiting = (atLeast, $0) }
        }
        let taken = min(free, atMost)
        free -= taken
        return taken
    }

    /// Returns slots.
    func give(_ count: Int) {
        free += count
        guard let waiting, free >= waiting.atLeast else { return }
        self.waiting = nil
        waiting.turn.resume()
    }
}

/// The number of calls of each app that are under way in this process or wait for their turn.
actor CallsInFlight {
    /// The calls by app; apps without calls are left out.
    private(set) var byApp: [Int32: Int] = [:]

    /// Counts the calls about claims as begun.
    func begin(_ claims: [Claim]) {
        for claim in claims { byApp[claim.app.id, default: 0] += 1 }
    }

    /// Counts a call as ended: it was answered, or never will be.
    func end(_ claim: Claim) {
        let left = byApp[claim.app.id, default: 0] - 1
        byApp[claim.app.id] = left > 0 ? left : nil
    }
}

extension App {
    /// The longest time Apple may take to answer before fewer calls are made, in seconds. With slower answers calls
    /// would pile up at Apple.
    static let latencySecondsMax = 5.0

    /// The most calls under way at the same time in one process: rate times latency. Nil without a limit, also where
    /// that is more than a process makes anyway.
    var callsInFlightMax: Int? {
        let calls = (callsPerSecondNow * Self.latencySecondsMax).rounded(.up)
        return calls == 0 || calls >= Double(Worker.claimsMax) ? nil : max(1, Int(calls))
    }
}

/// Claims that have no answer because the process stopped.
actor UnaskedClaims {
    /// The claims to hand back.
    private(set) var claims: [Claim] = []

    /// Adds a claim.
    func add(_ claim: Claim) {
        claims.append(claim)
    }
}
