/// A moment in UTC with millisecond precision, as Apple's `*_ms` fields give it.
package struct Instant: Hashable, Comparable, Sendable {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    package let milliseconds: Int64

    /// Creates an instant from milliseconds since 1970-01-01T00:00:00Z.
    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// Returns whether `left` is earlier than `right`.
    package static func < (left: Instant, right: Instant) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// Returns the instant `delay` later; saturates instead of overflowing.
    package static func + (instant: Instant, delay: Delay) -> Instant {
        let (sum, overflow) = instant.milliseconds.addingReportingOverflow(delay.milliseconds)
        guard overflow else { return Instant(milliseconds: sum) }
        return Instant(milliseconds: delay.milliseconds > 0 ? .max : .min)
    }

    /// Returns the instant `delay` earlier; saturates instead of overflowing.
    package static func - (instant: Instant, delay: Delay) -> Instant {
        instant + Delay(milliseconds: -delay.milliseconds)
    }

    /// Returns the time from `right` to `left`; saturates instead of overflowing.
    package static func - (left: Instant, right: Instant) -> Delay {
        let (difference, overflow) = left.milliseconds.subtractingReportingOverflow(right.milliseconds)
        guard overflow else { return Delay(milliseconds: difference) }
        return Delay(milliseconds: left > right ? .max : -.max)
    }
}

/// A length of time in milliseconds.
package struct Delay: Hashable, Comparable, Sendable {
    /// The length in milliseconds; negative if it points to the past.
    package let milliseconds: Int64

    /// Creates a length of time from milliseconds.
    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// A length of zero.
    package static let zero = Delay(milliseconds: 0)
    /// Returns a number of seconds.
    package static func seconds(_ count: Int64) -> Delay { Delay(milliseconds: count * 1000) }
    /// Returns a number of minutes.
    package static func minutes(_ count: Int64) -> Delay { .seconds(count * 60) }
    /// Returns a number of hours.
    package static func hours(_ count: Int64) -> Delay { .minutes(count * 60) }
    /// Returns a number of days of 24 hours.
    package static func days(_ count: Int64) -> Delay { .hours(count * 24) }

    /// Returns whether `left` is shorter than `right`.
    package static func < (left: Delay, right: Delay) -> Bool {
        left.milliseconds < right.milliseconds
    }
}
