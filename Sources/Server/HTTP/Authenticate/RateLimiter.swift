import Hummingbird
import Ledger
import Synchronization

/// What is left of a caller's rate after one request.
struct RateStanding: Sendable, Hashable {
    /// The requests that may be made at once after a pause.
    let limit: Int
    /// The requests that may be made at once now.
    let remaining: Int
    /// Seconds until all of them may be made again without a further request.
    let resetSeconds: Int
    /// Seconds until the next request is admitted; nil where this one is.
    let waitSeconds: Double?
}

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
        take(of: caller, at: rate)?.waitSeconds
    }

    /// Returns whether the next request of a caller would have to wait. Takes none.
    func isExhausted(_ caller: ID, at rate: RequestRate) -> Bool {
        let moment = now()
        return buckets.withLock { buckets in
            buckets[caller].map { $0.tokens + (moment - $0.at).inSeconds * rate.perSecond < 1 } ?? false
        }
    }

    /// Takes one request of a caller. Returns what is left; nil where the rate is unlimited.
    func take(of caller: ID, at rate: RequestRate) -> RateStanding? {
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
            return RateStanding(
                limit: Int(rate.burst), remaining: Int(max(0, bucket.tokens)),
                resetSeconds: Int(
                    min((rate.burst - bucket.tokens) / rate.perSecond, Self.waitSecondsMax).rounded(.up)),
                waitSeconds: missing <= 0 ? nil : min(missing / rate.perSecond, Self.waitSecondsMax))
        }
    }

    /// Forgets the buckets unused for a minute. At any usual rate they are full again, so that forgetting them changes
    /// nothing.
    private static func forgetFull(_ buckets: inout [ID: Bucket], at moment: ContinuousClock.Instant) {
        buckets = buckets.filter { moment - $0.value.at < .seconds(60) }
        if buckets.count >= callersMax { buckets.removeAll(keepingCapacity: true) }
    }
}

extension RateStanding {
    /// The headers of an answer, as in the IETF draft `RateLimit header fields for HTTP`, version 7.
    var headers: HTTPFields {
        [.rateLimit: String(limit), .rateLimitRemaining: String(remaining), .rateLimitReset: String(resetSeconds)]
    }
}

// The names are tokens of RFC 9110, so the initializers cannot fail.
// swift-format-ignore: NeverForceUnwrap
extension HTTPFields.Element.Name {
    static let rateLimit = Self("RateLimit-Limit")!
    static let rateLimitRemaining = Self("RateLimit-Remaining")!
    static let rateLimitReset = Self("RateLimit-Reset")!
}

extension Duration {
    /// The duration in seconds, with their fraction.
    fileprivate var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
