import Ledger

/// How many calls about each app are under way in this process.
actor CallsInFlight {
    /// By app; apps without any are left out.
    private(set) var byApp: [Int32: Int] = [:]

    /// Calls begin.
    func begin(_ claims: [Claim]) {
        for claim in claims { byApp[claim.app.id, default: 0] += 1 }
    }

    /// A call is answered, or will never be.
    func end(_ claim: Claim) {
        let left = byApp[claim.app.id, default: 0] - 1
        byApp[claim.app.id] = left > 0 ? left : nil
    }
}

extension App {
    /// How long an answer may take until fewer calls are made, in seconds: with slower answers than that, calls would pile
    /// up at Apple's.
    static let latencySecondsMax = 5.0

    /// Calls under way at the same time in one process, at most: rate times latency; nil without a limit, as where that is
    /// more than a process makes anyway.
    var callsInFlightMax: Int? {
        let calls = (callsPerSecondNow * Self.latencySecondsMax).rounded(.up)
        return calls == 0 || calls >= Double(Worker.callsMax) ? nil : max(1, Int(calls))
    }
}
