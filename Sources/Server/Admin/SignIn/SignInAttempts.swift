import Synchronization

/// The counts of recently failed sign-ins, by source address and key prefix.
///
/// A key has 256 bits and cannot be guessed. The limit stops a caller who keeps trying a wrong key. It does not affect
/// other callers, or other keys from the same address, as behind a reverse proxy.
final class SignInAttempts: Sendable {
    /// The key by which failures are counted.
    struct Attempt: Hashable, Sendable {
        /// The number of a key's characters that are kept: too few to be of use, enough to distinguish keys.
        private static let prefixCharacters = "perennial_".count + 8

        /// The source address of the attempt.
        let source: SourceAddress
        private let keyPrefix: String

        /// Creates an attempt from `source` with the key `secret`.
        init(from source: SourceAddress, withSecret secret: String) {
            self.source = source
            keyPrefix = String(secret.prefix(Self.prefixCharacters))
        }
    }

    /// The failures that are allowed in one stretch of time, and its length in seconds.
    static let failuresMax = 20
    static let stretchSeconds = 60
    /// The most attempts counted separately. Beyond it, expired ones are forgotten, or all where that is not enough.
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

    /// Returns the seconds until such an attempt is allowed, or nil when it is allowed now.
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
