/// Stops asking about one app while Apple answers nobody of it, and tries a few receipts after each pause.
struct Breaker: Sendable, Hashable {
    /// Rounds of answers in a row that mostly failed.
    private(set) var failures = 0

    /// Rounds that may fail before the first pause.
    static let failuresTolerated = 2
    /// The longest pause, in seconds.
    static let pauseSecondsMax = 60.0

    /// Takes in how a round went: `troubled` answers out of `asked`.
    mutating func record(asked: Int, troubled: Int) {
        guard asked > 0 else { return }
        failures = troubled * 2 > asked ? min(failures + 1, 100) : 0
    }

    /// Seconds to wait before the next claim; 0 while Apple answers.
    var pauseSeconds: Double {
        let beyond = failures - Self.failuresTolerated
        guard beyond > 0 else { return 0 }
        return min(Self.pauseSecondsMax, Double(1 << min(beyond, 10)))
    }
}

/// The breakers of a process's apps.
actor Breakers {
    private var breakers: [Int32: Breaker] = [:]

    /// Takes in one round's answers about an app; the breaker, where it has changed.
    func record(_ app: Int32, asked: Int, troubled: Int) -> Breaker? {
        let before = breakers[app] ?? Breaker()
        var after = before
        after.record(asked: asked, troubled: troubled)
        breakers[app] = after
        return after == before ? nil : after
    }
}
