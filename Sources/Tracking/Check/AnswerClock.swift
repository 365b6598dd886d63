import AppStore
import Subscriptions

/// How far Apple's clock is believed.
///
/// Both clocks are those of real machines, and a call between them takes seconds. The limits are lengths of real time, for a
/// pretend App Store too: its months are short, but its clock is its machine's, so no speed-up divides them.
package enum ClockLimit: Sendable {
    /// More than this ahead of the database's clock an answer counts from the database's.
    static let aheadMax = Delay.minutes(5)
    /// More than this ahead an answer is not believed at all.
    static let believableMax = Delay.hours(1)

    /// As far as it likes: an answer that is only looked at.
    case none
    /// Not far beyond the database's clock when the answer came.
    case database(Instant)
    /// As it was believed when the answer was settled.
    case settled(Instant)
}

/// The instant an answer speaks for.
enum AnswerClock: Hashable {
    /// Apple's clock, or the database's where the answer has none.
    case believed(Instant)
    /// The database's clock, because Apple's was ahead of it by so much.
    case clamped(Instant, ahead: Delay)
    /// None: Apple's clock was ahead of the database's by so much.
    case unbelievable(ahead: Delay)

    /// The clock of an answer; `clock` where it has none of its own (legacy receipts).
    init(of response: VerifyReceiptResponse?, clock: Instant, limit: ClockLimit) {
        guard let requestedAt = response?.requestedAt.map(Instant.init(milliseconds:)) else {
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

    /// The instant it speaks for; nil for none.
    var instant: Instant? {
        switch self {
        case .believed(let instant), .clamped(let instant, _): instant
        case .unbelievable: nil
        }
    }

    /// By how much Apple's clock was too far ahead of the database's; nil when it was not.
    var ahead: Delay? {
        switch self {
        case .believed: nil
        case .clamped(_, let ahead), .unbelievable(let ahead): ahead
        }
    }
}
