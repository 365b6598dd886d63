package import Subscriptions

/// The rate limit of an app's calls to Apple: shared by all workers, stored with the app's budget.
package struct CallRateLimit: Sendable, Hashable {
    /// The lowest rate limit: one call every two seconds.
    package static let callsPerSecondMin = 0.5
    /// The rate at which an app without a rate limit of its own is no longer slowed down, in calls a second.
    package static let callsPerSecondUnlimited = 1_000.0
    /// The time to grow from zero to the full rate, in seconds.
    package static let growthSeconds = 60.0

    /// The operator's rate limit in calls a second; 0 is unlimited.
    package var callsPerSecondMax: Double
    /// The reduced rate since Apple last asked for fewer calls, and its time; nil if Apple never did.
    package var slowed: Slowed?
    /// The number of consecutive rounds in which most answers failed; above 0 only a few receipts are tried.
    package var failures: Int
    /// The instant before which no call is made.
    package var pausedUntil: Instant

    /// A reduced rate.
    package struct Slowed: Sendable, Hashable {
        /// The rate in calls a second.
        package var callsPerSecond: Double
        /// The time of the reduction, by the database's clock.
        package var at: Instant

        /// Creates a rate reduced to `callsPerSecond` at an instant, but not below the lowest rate limit.
        package init(to callsPerSecond: Double, at instant: Instant) {
            self.callsPerSecond = max(CallRateLimit.callsPerSecondMin, callsPerSecond)
            at = instant
        }
    }

    /// Creates a rate limit from its parts.
    package init(
        callsPerSecondMax: Double, slowed: Slowed? = nil, failures: Int = 0,
        pausedUntil: Instant = Instant(milliseconds: .min)
    ) {
        self.callsPerSecondMax = callsPerSecondMax
        self.slowed = slowed
        self.failures = failures
        self.pausedUntil = pausedUntil
    }

    /// Returns the rate limit at an instant, in calls a second; 0 is unlimited.
    ///
    /// A reduced rate grows each second by a sixtieth of the full rate, at least by 0.05. The SQL function
    /// `ledger.calls_a_second` computes the same; a test compares them.
    package func callsPerSecond(at now: Instant) -> Double {
        guard let slowed else { return callsPerSecondMax }
        let passed = max(0, Double((now - slowed.at).milliseconds) / 1000)
        let grown = slowed.callsPerSecond + max(callsPerSecondFull / Self.growthSeconds, 0.05) * passed
        return grown < callsPerSecondFull ? grown : callsPerSecondMax
    }

    /// The full rate as a finite number, for calculations.
    package var callsPerSecondFull: Double {
        callsPerSecondMax == 0 ? Self.callsPerSecondUnlimited : callsPerSecondMax
    }
}
