import Ledger
import Synchronization

/// Counts the requests of each caller, known by an id, in this process: a token bucket each.
final class RateLimiter<ID: Hashable & Sendable>: Sendable {
    private struct Bucket {
        var tokens: Double
        var at: ContinuousClock.Instant
    }

    /// How many callers are counted; when there are more, those that are full again are forgotten.
    static var callersMax: Int { 1000 }

    /// The longest wait that is told, in seconds: whoever waited that long may ask again in any case.
    static var waitSecondsMax: Double { 3_600 }

    private let now: @Sendable () -> ContinuousClock.Instant
    private let buckets = Mutex<[ID: Bucket]>([:])

    /// A limiter; `now` is for tests.
    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
        self.now = now
    }

    /// Takes one request of a caller; nil when there is room, else in how many seconds there is.
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

    /// A bucket that nobody used for a minute has, at any usual rate, filled up: forgetting it changes nothing.
    private static func forgetFull(_ buckets: inout [ID: Bucket], at moment: ContinuousClock.Instant) {
        buckets = buckets.filter { moment - $0.value.at < .seconds(60) }
        if buckets.count >= callersMax { buckets.removeAll(keepingCapacity: true) }
    }
}

extension Duration {
    /// Seconds with their fraction.
    fileprivate var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
