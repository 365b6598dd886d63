/// Stops asking about one app while Apple answers nobody of it, and tries a few receipts after each pause.
struct Breaker: Sendable, Hashable {
    /// Rounds of answers in a row that mostly failed.
    private(set) var failures = 0
    private var asked = 0
    private var troubled = 0

    /// Answers that make a round, and fewer while only a few receipts are tried.
    static let roundAnswersMin = 20
    static let probeAnswersMin = 3
    /// Rounds that may fail before the first pause.
    static let failuresTolerated = 2
    /// The longest pause, in seconds.
    static let pauseSecondsMax = 60.0

    /// Takes in `troubled` answers out of `asked`; enough of them end a round.
    mutating func record(asked: Int, troubled: Int) {
        self.asked += asked
        self.troubled += troubled
        guard self.asked >= (failures > 0 ? Self.probeAnswersMin : Self.roundAnswersMin) else { return }
        failures = self.troubled * 2 > self.asked ? min(failures + 1, 100) : 0
        (self.asked, self.troubled) = (0, 0)
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

    /// Takes in answers about an app; its breaker, when a round changed what it says.
    func record(_ app: Int32, asked: Int, troubled: Int) -> Breaker? {
        let before = breakers[app] ?? Breaker()
        var after = before
        after.record(asked: asked, troubled: troubled)
        breakers[app] = after
        return after.failures == before.failures ? nil : after
    }
}
