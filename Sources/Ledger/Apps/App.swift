import Subscriptions

/// One registered app with its settings; its secrets stay sealed until a check needs them.
package struct App: Sendable, Hashable {
    /// The app's key in the ledger.
    package let id: Int32
    /// Apple's bundle id.
    package let bundleID: BundleID
    /// A name for people.
    package let name: String
    /// Whether purchases of Apple's sandbox are accepted.
    package let sandboxAllowed: Bool
    /// What happens when another customer uploads an owned subscription.
    package let ownershipPolicy: OwnershipPolicy
    /// How long a renewal may be late before access ends, in production.
    package let leeway: Delay
    /// The same in the sandbox.
    package let sandboxLeeway: Delay
    /// How long access goes on while Apple cannot be asked.
    package let outageAllowance: Delay
    /// Over how long checks shortly before an end are spread; longer where many subscriptions end together.
    package let preCheckSpread: Delay
    /// Calls a second to Apple; 0 is unlimited.
    package let callsPerSecond: Double
    /// Calls that may be made at once after a pause.
    package let burst: Double
    /// How often refunds are looked for.
    package let sweep: SweepPace
    /// Whether Apple's notifications are taken as hints.
    package let takesNotifications: Bool
    /// How fast it is asked at present, when it was read.
    package let pace: CallPace
    /// Calls a second at that time; 0 is unlimited.
    package let callsPerSecondNow: Double
    /// Rounds of calls in a row, about whatever app, that brought no answer.
    package let appleFailures: Int
    /// Until when nothing is asked for this app, and why.
    package let pause: Pause?
    let sealedSecret: [UInt8]?
    let sealedPreviousSecret: [UInt8]?

    /// A pause of an app's checks.
    package struct Pause: Sendable, Hashable {
        /// When checks go on.
        package let until: Instant
        /// One sentence.
        package let reason: String
    }

    /// Whether a shared secret is stored.
    package var hasSecret: Bool { sealedSecret != nil }
}

/// What happens when a second customer uploads a receipt that holds an owned subscription.
package enum OwnershipPolicy: String, Sendable, CaseIterable {
    /// The newest uploader takes over, at most three times in 30 days.
    case transfer
    /// The first owner keeps it.
    case keep
    /// The newest uploader takes over only what gives no access any more.
    case transferIfLapsed = "transfer_if_lapsed"
}

/// How often refunds are looked for.
package enum SweepPace: String, Sendable, CaseIterable {
    /// As the schedule says.
    case normal
    /// Half as often: for an app whose refunds Apple's notifications tell.
    case relaxed

    /// How many times as long as the schedule says two looks are apart.
    var stretch: Int {
        switch self {
        case .normal: 1
        case .relaxed: 2
        }
    }
}

/// The shared secrets of an app in clear, for the length of a check.
package struct AppSecrets: Sendable {
    /// The secret in use.
    package let current: String?
    /// The secret before the last rotation.
    package let previous: String?
}
