package import Subscriptions

/// The limit up to which Apple's clock is believed.
///
/// Both clocks run on real machines, and a call between them takes seconds. The limits are lengths of real time, also
/// for a simulated App Store: its months are short, but it uses its machine's clock, so no speed-up divides the limits.
package enum ClockLimit: Sendable {
    /// An answer further ahead of the database's clock than this counts from the database's clock.
    static let aheadMax = Delay.minutes(5)
    /// An answer further ahead than this is not believed at all.
    static let believableMax = Delay.hours(1)

    /// No limit, for an answer that is only inspected.
    case none
    /// At most a little ahead of the database's clock at the time the answer came.
    case database(Instant)
    /// The instant that was believed when the answer was settled.
    case settled(Instant)
}

/// The instant an answer is valid for.
enum AnswerClock: Hashable {
    /// Apple's clock, or the database's where the answer has none.
    case believed(Instant)
    /// The database's clock, because Apple's was ahead of it by `ahead`.
    case clamped(Instant, ahead: Delay)
    /// No instant, because Apple's clock was ahead of the database's by `ahead`.
    case unbelievable(ahead: Delay)

    /// Determines the clock of an answer from its `request_date` in milliseconds; uses `clock` where the answer has none
    /// of its own (legacy receipts).
    init(_ requestedAt: Int64?, clock: Instant, limit: ClockLimit) {
        guard let requestedAt = requestedAt.map(Instant.init(milliseconds:)) else {
            self = .believed(clock)
            return
        }
        switch limit {
        case .none: self = .believed(requestedAt)
        case .settled(let instant): self = .believed(instant)
        case .database(let now):
            let ahead = requestedAt - now
            if ahead > ClockLimit.believableMax {
                self = .unbelievable(ahead: ahead)
            } else if ahead > ClockLimit.aheadMax {
                self = .clamped(now, ahead: ahead)
            } else {
                self = .believed(requestedAt)
            }
        }
    }

    /// The instant the answer is valid for; nil where Apple's clock is unbelievable.
    var instant: Instant? {
        switch self {
        case .believed(let instant), .clamped(let instant, _): instant
        case .unbelievable: nil
        }
    }

    /// How far Apple's clock was ahead of the database's, if too far; nil otherwise.
    var ahead: Delay? {
        switch self {
        case .believed: nil
        case .clamped(_, let ahead), .unbelievable(let ahead): ahead
        }
    }
}
