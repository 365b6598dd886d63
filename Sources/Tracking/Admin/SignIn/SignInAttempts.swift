import Synchronization

/// How many sign-ins failed lately, by where they came from and what their keys begin with.
///
/// A key cannot be guessed, having 256 bits; this keeps a caller with a wrong key from trying it for ever. Other callers, and
/// other keys from the same address, as behind a reverse proxy, are heard as before.
final class SignInAttempts: Sendable {
    /// What failures are counted by.
    struct Attempt: Hashable, Sendable {
        /// Characters of a key that are remembered: too few to be of use, enough to tell keys apart.
        private static let prefixCharacters = "perennial_".count + 8

        /// Where it came from.
        let source: SourceAddress
        private let keyPrefix: String

        /// An attempt from `source` with the key `secret`.
        init(from source: SourceAddress, withSecret secret: String) {
            self.source = source
            keyPrefix = String(secret.prefix(Self.prefixCharacters))
        }
    }

    /// Failures that are put up with in a stretch, and how long that is.
    static let failuresMax = 20
    static let stretchSeconds = 60
    /// How many are counted apart; beyond that all are forgotten.
    static let attemptsMax = 10_000

    private struct Stretch {
        var failures = 0
        let until: ContinuousClock.Instant
    }

    private let now: @Sendable () -> ContinuousClock.Instant
    private let stretches = Mutex<[Attempt: Stretch]>([:])

    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
        self.now = now
    }

    /// Seconds until an attempt of the kind is heard; nil when it is at once.
    func secondsToWait(before attempt: Attempt) -> Int? {
        let now = now()
        return stretches.withLock { stretches in
            guard let stretch = stretches[attempt], stretch.failures >= Self.failuresMax, now < stretch.until else {
                return nil
            }
            return max(1, Int((stretch.until - now).components.seconds))
        }
    }

    /// Counts an attempt that failed.
    func count(failed attempt: Attempt) {
        let now = now()
        stretches.withLock { stretches in
            if stretches[attempt].map({ now >= $0.until }) ?? true {
                if stretches.count >= Self.attemptsMax { stretches = stretches.filter { now < $0.value.until } }
                if stretches.count >= Self.attemptsMax { stretches.removeAll(keepingCapacity: true) }
                stretches[attempt] = Stretch(until: now.advanced(by: .seconds(Self.stretchSeconds)))
            }
            stretches[attempt]?.failures += 1
        }
    }
}
