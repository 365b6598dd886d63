import Subscriptions

/// One registered app with its settings; its secrets stay sealed until a check needs them.
public struct App: Sendable, Hashable {
    /// The app's key in the ledger.
    public let id: Int32
    /// Apple's bundle id.
    public let bundleID: BundleID
    /// A name for people.
    public let name: String
    /// Whether purchases of Apple's sandbox are accepted.
    public let sandboxAllowed: Bool
    /// What happens when another customer uploads an owned subscription.
    public let ownershipPolicy: OwnershipPolicy
    /// How long a renewal may be late before access ends, in production.
    public let leeway: Delay
    /// The same in the sandbox.
    public let sandboxLeeway: Delay
    /// How long access goes on while Apple cannot be asked.
    public let outageAllowance: Delay
    /// Over how long checks shortly before an end are spread; longer where many subscriptions end together.
    public let preCheckSpread: Delay
    /// Calls a second to Apple; 0 is unlimited.
    public let callsPerSecond: Double
    /// Calls that may be made at once after a pause.
    public let burst: Double
    /// How often refunds are looked for.
    public let sweep: SweepPace
    /// Whether Apple's notifications are taken as hints.
    public let takesNotifications: Bool
    /// How fast it is asked at present, when it was read.
    public let pace: CallPace
    /// Calls a second at that time; 0 is unlimited.
    public let callsPerSecondNow: Double
    /// Rounds of calls in a row, about whatever app, that brought no answer.
    public let appleFailures: Int
    /// Until when nothing is asked for this app, and why.
    public let pause: Pause?
    let sealedSecret: [UInt8]?
    let sealedPreviousSecret: [UInt8]?

    /// A pause of an app's checks.
    public struct Pause: Sendable, Hashable {
        /// When checks go on.
        public let until: Instant
        /// One sentence.
        public let reason: String
    }

    /// Whether a shared secret is stored.
    public var hasSecret: Bool { sealedSecret != nil }
}

/// What happens when a second customer uploads a receipt that holds an owned subscription.
public enum OwnershipPolicy: String, Sendable, CaseIterable {
    /// The newest uploader takes over, at most three times in 30 days.
    case transfer
    /// The first owner keeps it.
    case keep
    /// The newest uploader takes over only what gives no access any more.
    case transferIfLapsed = "transfer_if_lapsed"
}

/// How often refunds are looked for.
public enum SweepPace: String, Sendable, CaseIterable {
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
public struct AppSecrets: Sendable {
    /// The secret in use.
    public let current: String?
    /// The secret before the last rotation.
    public let previous: String?
}
