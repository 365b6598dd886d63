import Synchronization

/// How many sign-ins failed lately: after too many nobody may try for a while.
///
/// A key cannot be guessed, having 256 bits; this keeps those who try from keeping the database busy.
final class SignInAttempts: Sendable {
    /// Failures that are put up with in a stretch, and how long that is.
    static let failuresMax = 20
    static let stretchSeconds = 60

    private struct Stretch {
        var failures = 0
        var until: ContinuousClock.Instant
    }

    private let now: @Sendable () -> ContinuousClock.Instant
    private let stretch: Mutex<Stretch>

    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
        self.now = now
        stretch = Mutex(Stretch(until: now()))
    }

    /// Seconds until the next attempt is heard; nil when it is at once.
    var waitSeconds: Int? {
        let now = now()
        return stretch.withLock { stretch in
            guard stretch.failures >= Self.failuresMax, now < stretch.until else { return nil }
            return max(1, Int((stretch.until - now).components.seconds))
        }
    }

    /// Counts a failure.
    func fail() {
        let now = now()
        stretch.withLock { stretch in
            if now >= stretch.until {
                stretch = Stretch(until: now.advanced(by: .seconds(Self.stretchSeconds)))
            }
            stretch.failures += 1
        }
    }
}
