import Hummingbird
import HummingbirdTesting
import Synchronization
import TestSupport
import Testing

@testable import Server
@testable import Tracking

@Suite("A key is limited to its rate") struct RateTests {
    /// A clock that a test moves by hand.
    private final class ManualClock: Sendable {
        private let moment = Mutex(ContinuousClock.now)

        var now: ContinuousClock.Instant { moment.withLock { $0 } }
        func pass(_ duration: Duration) { moment.withLock { $0 += duration } }
    }

    private func key(_ id: Int32, _ perSecond: Double, _ burst: Double) -> APIKey {
        APIKey(id: id, scope: .read, bundleID: nil, rate: RequestRate(perSecond: perSecond, burst: burst))
    }

    private func pause(_ limiter: RateLimiter<Int32>, _ key: APIKey) -> Double? {
        limiter.secondsToWait(of: key.id, at: key.rate)
    }

    @Test("A bucket empties and fills")
    func aBucketEmptiesAndFills() throws {
        let clock = ManualClock()
        let limiter = RateLimiter<Int32> { clock.now }
        let slow = key(1, 2, 3)
        for _ in 0..<3 { #expect(limiter.secondsToWait(of: slow.id, at: slow.rate) == nil) }
        let wait = try #require(limiter.secondsToWait(of: slow.id, at: slow.rate))
        #expect(abs(wait - 0.5) < 1e-6)
        #expect(pause(limiter, key(2, 2, 3)) == nil)
        clock.pass(.milliseconds(501))
        #expect(limiter.secondsToWait(of: slow.id, at: slow.rate) == nil)
        #expect(limiter.secondsToWait(of: slow.id, at: slow.rate) != nil)
        clock.pass(.seconds(3600))
        for _ in 0..<3 { #expect(limiter.secondsToWait(of: slow.id, at: slow.rate) == nil) }
        #expect(limiter.secondsToWait(of: slow.id, at: slow.rate) != nil)
    }

    @Test("An answer says what is left of the rate, whatever it answers")
    func whatIsLeft() async throws {
        let paths = [
            (Serving.entitlements, 200, "2"), (Serving.entitlements + "?at=soon", 400, "1"),
            ("/v1/apps/com.example.none/receipts/1", 404, "0"), (Serving.entitlements, 429, "0"),
        ]
        try await ServedLedger.with { served in
            let slow = try await served.key(.read, rate: RequestRate(perSecond: 0.01, burst: 3))
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                for (path, status, remaining) in paths {
                    let answer = try await client.send(.get, path, secret: slow)
                    #expect(answer.status.code == status && answer.headers[.rateLimit] == "3", "\(path)")
                    #expect(answer.headers[.rateLimitRemaining] == remaining, "\(path)")
                    let reset = try #require(answer.headers[.rateLimitReset].flatMap(Int.init))
                    #expect((90...300).contains(reset), "\(path): \(reset)")
                    #expect((answer.headers[.retryAfter] != nil) == (status == 429), "\(path)")
                }
                let free = try await client.send(.get, Serving.entitlements, secret: served.secret)
                #expect(free.status == .ok && free.headers[.rateLimit] == nil)
            }
        }
    }

    @Test("Zero is unlimited")
    func zeroIsUnlimited() {
        let limiter = RateLimiter<Int32>()
        let free = key(1, 0, 1)
        for _ in 0..<10_000 { #expect(limiter.secondsToWait(of: free.id, at: free.rate) == nil) }
    }

    @Test("No answer asks a caller to wait for longer than an hour")
    func nobodyIsToldToWaitForLongerThanAnHour() {
        let limiter = RateLimiter<Int32>()
        let slowest = key(1, 1e-300, 1)
        #expect(pause(limiter, slowest) == nil)
        #expect(pause(limiter, slowest) == RateLimiter<Int32>.waitSecondsMax)
    }

    @Test("A rate that makes no sense is refused")
    func aRateThatNobodyCanMeanIsRefused() async throws {
        try await ServedLedger.with { served in
            for (perSecond, burst) in [
                (1e-300, 1), (-1, 1), (1e300, 1), (.infinity, 1), (.nan, 1), (1, 0), (1, 1e300),
            ] as [(Double, Double)] {
                let error = await #expect(throws: LedgerError.self, "\(perSecond), \(burst)") {
                    try await served.key(.read, rate: RequestRate(perSecond: perSecond, burst: burst))
                }
                #expect(error?.kind == .invalid)
            }
        }
    }

    @Test("Many keys are not remembered for ever")
    func manyKeysAreNotRememberedForEver() {
        let clock = ManualClock()
        let limiter = RateLimiter<Int32> { clock.now }
        #expect(pause(limiter, key(0, 0.001, 1)) == nil)
        #expect(pause(limiter, key(0, 0.001, 1)) != nil)
        for id in 1...Int32(RateLimiter<Int32>.callersMax * 3) {
            #expect(pause(limiter, key(id, 1, 1)) == nil)
        }
    }

    @Test("A caller that asks too often is refused with a time to come back")
    func whoAsksTooOftenIsToldWhenToComeBack() async throws {
        try await ServedLedger.with { served in
            let slow = try await served.key(.read, rate: RequestRate(perSecond: 0.01, burst: 3))
            try await Serving.with(Tracker.quiet(served.ledger)) { client in
                for _ in 0..<3 {
                    let answer = try await client.send(.get, Serving.entitlements, secret: slow)
                    #expect(answer.status == .ok)
                }
                let refused = try await client.send(.get, Serving.entitlements, secret: slow)
                try expectProblem(refused, "too-many", status: 429)
                #expect(refused.headers[.rateLimit] == "3" && refused.headers[.rateLimitRemaining] == "0")
                let seconds = try #require(refused.headers[.retryAfter].flatMap(Int.init))
                #expect((1...100).contains(seconds))
                let other = try await client.send(.get, Serving.entitlements, secret: served.secret)
                #expect(other.status == .ok)
            }
        }
    }
}
