import Synchronization
import Testing

@testable import Server
@testable import Tracking

/// A clock that stands until it is moved, and how often the database was asked.
private final class Bench: Sendable {
    let seconds = Mutex(0)
    let asked = Mutex(0)
    let revoked = Mutex(false)
    private let start = ContinuousClock.now

    var ring: KeyCache {
        KeyCache(now: { self.start + .seconds(self.seconds.withLock { $0 }) }) { secret in
            self.asked.withLock { $0 += 1 }
            return self.revoked.withLock { $0 } ? nil : TestKey.find(secret)
        }
    }
}

@Suite("The cache of keys is short-lived and bounded") struct KeyCacheTests {
    @Test("A revoked key stops after ten seconds")
    func aRevokedKeyStopsAfterTenSeconds() async throws {
        let bench = Bench()
        let ring = bench.ring
        #expect(try await ring.key(withSecret: TestKey.read.secret)?.id == 1)
        bench.revoked.withLock { $0 = true }
        bench.seconds.withLock { $0 = 9 }
        #expect(try await ring.key(withSecret: TestKey.read.secret)?.id == 1)
        #expect(bench.asked.withLock { $0 } == 1)
        bench.seconds.withLock { $0 = 10 }
        #expect(try await ring.key(withSecret: TestKey.read.secret) == nil)
        #expect(bench.asked.withLock { $0 } == 2)
    }

    @Test("A key is found by the header that brought it, and by no other text")
    func foundByItsHeader() async throws {
        let bench = Bench()
        let (ring, secret) = (bench.ring, TestKey.read.secret)
        #expect(ring.known(given: "bearer \(secret)") == nil)
        #expect(try await ring.key(withSecret: secret, given: "bearer \(secret)")?.id == 1)
        #expect(ring.known(given: "bearer \(secret)")?.id == 1 && bench.asked.withLock { $0 } == 1)
        #expect(try await ring.key(withSecret: secret)?.id == 1)
        for other in [secret, "Basic \(secret)", "bearer \(secret) ", "BEARER \(secret)"] {
            #expect(ring.known(given: other) == nil)
        }
        bench.seconds.withLock { $0 = 10 }
        #expect(ring.known(given: "bearer \(secret)") == nil && ring.known(given: "Bearer \(secret)") == nil)
    }

    @Test("An unknown key is asked each time")
    func anUnknownKeyIsAskedEachTime() async throws {
        let bench = Bench()
        let ring = bench.ring
        for _ in 0..<3 { #expect(try await ring.key(withSecret: TestKey.unknown.secret) == nil) }
        #expect(bench.asked.withLock { $0 } == 3)
    }

    @Test(
        "What cannot be a key is not asked",
        arguments: ["", "perennial_", "secret", "perennial_" + String(repeating: "g", count: 64), "perennial_é"])
    func whatCannotBeAKeyIsNotAsked(_ secret: String) async throws {
        let bench = Bench()
        #expect(try await bench.ring.key(withSecret: secret) == nil)
        #expect(bench.asked.withLock { $0 } == 0)
    }

    @Test("The memory is bounded")
    func theMemoryIsBounded() {
        let start = ContinuousClock.now
        var memory = TTLCache<Int, Int>(entriesMax: 3, seconds: 10)
        for number in 0..<3 { memory.keep(number, for: number, at: start + .seconds(number)) }
        #expect(memory.entries.count == 3 && memory.value(for: 0, at: start) == 0)
        memory.keep(9, for: 2, at: start + .seconds(3))
        #expect(memory.entries.count == 3 && memory.value(for: 2, at: start + .seconds(12)) == 9)
        // At 11 s the first two are outdated and make room; at 12 s nothing is, and all is forgotten.
        memory.keep(3, for: 3, at: start + .seconds(11))
        #expect(memory.entries.count == 2 && memory.value(for: 1, at: start + .seconds(11)) == nil)
        memory.keep(4, for: 4, at: start + .seconds(11))
        memory.keep(5, for: 5, at: start + .seconds(12))
        #expect(memory.entries.count == 1 && memory.value(for: 5, at: start + .seconds(12)) == 5)
    }
}
