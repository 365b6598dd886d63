import Subscriptions

/// How fast an app's receipts are asked about: shared by all workers, kept with the app's budget.
package struct CallPace: Sendable, Hashable {
    /// The slowest pace: a call every other second.
    package static let callsPerSecondMin = 0.5
    /// From where on an app without a rate of its own is not held back any more.
    package static let callsPerSecondUnlimited = 1_000.0
    /// How long it takes to grow from nothing to the full rate, in seconds.
    package static let growthSeconds = 60.0

    /// Calls a second that the operator allows; 0 is any number.
    package var callsPerSecondMax: Double
    /// What it was slowed to when Apple last asked for fewer calls, and when; nil while Apple never did.
    package var slowed: Slowed?
    /// Rounds of answers in a row most of which failed; above 0 only a few receipts are tried.
    package var failures: Int
    /// Nothing was or will be asked before.
    package var closedUntil: Instant

    /// A slower pace.
    package struct Slowed: Sendable, Hashable {
        /// Calls a second.
        package var callsPerSecond: Double
        /// By the database's clock.
        package var at: Instant

        /// A pace slowed to `callsPerSecond` at an instant.
        package init(to callsPerSecond: Double, at instant: Instant) {
            self.callsPerSecond = max(CallPace.callsPerSecondMin, callsPerSecond)
            at = instant
        }
    }

    /// A pace from its parts.
    package init(
        callsPerSecondMax: Double, slowed: Slowed? = nil, failures: Int = 0,
        closedUntil: Instant = Instant(milliseconds: .min)
    ) {
        self.callsPerSecondMax = callsPerSecondMax
        self.slowed = slowed
        self.failures = failures
        self.closedUntil = closedUntil
    }

    /// Calls a second at an instant, 0 for any number: the slowed pace and a sixtieth of the full rate more each second.
    ///
    /// The same as the SQL function `ledger.calls_a_second`; a test holds them equal.
    package func callsPerSecond(at now: Instant) -> Double {
        guard let slowed else { return callsPerSecondMax }
        let passed = max(0, Double((now - slowed.at).milliseconds) / 1000)
        let grown = slowed.callsPerSecond + max(callsPerSecondFull / Self.growthSeconds, 0.05) * passed
        return grown < callsPerSecondFull ? grown : callsPerSecondMax
    }

    /// The full rate as a number to reckon with.
    package var callsPerSecondFull: Double {
        callsPerSecondMax == 0 ? Self.callsPerSecondUnlimited : callsPerSecondMax
    }
}
