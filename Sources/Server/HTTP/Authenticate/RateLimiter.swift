import Ledger
import Synchronization

/// A rate limiter of this process with one token bucket for each caller id.
final class RateLimiter<ID: Hashable & Sendable>: Sendable {
    private struct Bucket {
        var tokens: Double
        var at: ContinuousClock.Instant
    }

    /// The most callers counted. Beyond it, callers idle for a minute are forgotten, or all where that is not enough.
    static var callersMax: Int { 1000 }

    /// The longest wait that is reported, in seconds. A caller who waited that long may ask again in any case.
    static var waitSecondsMax: Double { 3_600 }

    private let now: @Sendable () -> ContinuousClock.Instant
    private let buckets = Mutex<[ID: Bucket]>([:])

    /// Creates a limiter; only tests replace the clock, with `now`.
    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
        self.now = now
    }

    /// Takes one request of a caller. Returns nil when it is admitted, else the seconds to wait.
    func secondsToWait(of caller: ID, at rate: RequestRate) -> Double? {
        guard rate.perSecond > 0 else { return nil }
        let moment = now()
        return buckets.withLock { buckets in
            var bucket = buckets[caller] ?? Bucket(tokens: rate.burst, at: moment)
            bucket.tokens = min(rate.burst, bucket.tokens + (moment - bucket.at).inSeconds * rate.perSecond)
            bucket.at = moment
            let missing = 1 - bucket.tokens
            if missing <= 0 { bucket.tokens -= 1 }
            if buckets[caller] == nil, buckets.count >= Self.callersMax { Self.forgetFull(&buckets, at: moment) }
            buckets[caller] = bucket
            return missing <= 0 ? nil : min(missing / rate.perSecond, Self.waitSecondsMax)
        }
    }

    /// Forgets the buckets unused for a minute. At any usual rate they are full again, so that forgetting them changes
    /// nothing.
    private static func forgetFull(_ buckets: inout [ID: Bucket], at moment: ContinuousClock.Instant) {
        buckets = buckets.filter { moment - $0.value.at < .seconds(60) }
        if buckets.count >= callersMax { buckets.removeAll(keepingCapacity: true) }
    }
}

extension Duration {
    /// The duration in seconds, with their fraction.
    fileprivate var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
