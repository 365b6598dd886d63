import Foundation
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@testable import PerennialClient

@Suite("Entitlements are remembered for the time when the server is away")
struct EntitlementCacheTests {
    /// An uptime that a test moves.
    final class Clock: Sendable {
        private let seconds = Mutex<Double>(1_000)
        var now: Double { seconds.withLock { $0 } }
        func move(_ count: Double) { seconds.withLock { $0 += count } }
    }

    let store = ScriptedServer()
    let clock = Clock()

    private func cache(
        usableSeconds: Double = 600, customersMax: Int = 100, pauseSeconds: Double = 0
    ) -> EntitlementCache {
        let clock = clock
        return EntitlementCache(
            store.server(), usableSeconds: usableSeconds, customersMax: customersMax, pauseSeconds: pauseSeconds,
            uptime: { clock.now })
    }

    /// An answer of 12:00 with `pro` until 12:05 and `themes` without an end.
    private func answer(tag: String = #"W/"1""#, at: String = "12:00:00", granted: Bool = true) -> ScriptedServer.Answer
    {
        ScriptedServer.Answer(
            headers: ["ETag": tag],
            body: """
                {"app":"com.example.app","customer":"kim","at":"2026-11-24T\(at).000Z","stale":false,"max_age_s":60,
                 "known_at":"2026-11-24T\(at).000Z","entitlements":[
                 {"entitlement":"pro","granted":\(granted),"until":"2026-11-24T12:05:00.000Z","product_id":"monthly",
                  "state":"active","reason":null,"environment":"Production","basis":"verified",
                  "as_of":"2026-11-24T11:59:00.000Z","checked_at":"2026-11-24T11:59:01.000Z"},
                 {"entitlement":"themes","granted":true,"until":null,"product_id":"themes","state":"of a newer server",
                  "reason":null,"environment":"Production","basis":"verified","as_of":null,"checked_at":null}]}
                """)
    }

    @Test("An unchanged answer is confirmed by its tag and stays usable from then on")
    func tag() async throws {
        let cache = cache(usableSeconds: 100)
        store.say(answer())
        #expect(try await cache.entitlements(of: "kim").grants("pro"))
        clock.move(90)
        store.say(ScriptedServer.Answer(status: 304))
        let same = try await cache.entitlements(of: "kim")
        #expect(same.grants("pro") && !same.isStale && same.failure == nil)
        #expect(store.requests.map { $0.value(forHTTPHeaderField: "If-None-Match") } == [nil, #"W/"1""#])
        clock.move(90)
        store.say(nil)
        #expect(try await cache.entitlements(of: "kim").grants("pro"))
        clock.move(11)
        await #expect(throws: PerennialError.self) { try await cache.entitlements(of: "kim") }
    }

    @Test("While the server is away the last answer is stale, and grants nothing beyond its end")
    func away() async throws {
        for failure in [nil, ScriptedServer.Answer.problem(503, "unavailable"), .problem(401, "unauthenticated")] {
            let cache = cache()
            store.say(answer(), failure)
            _ = try await cache.entitlements(of: "kim")
            clock.move(299)
            let kept = try await cache.entitlements(of: "kim")
            #expect(kept.isStale && kept.failure != nil && kept.grants("pro") && kept.grants("themes"))
            #expect(kept.entitlements[0].endedAt == nil)
            #expect(kept.entitlements[0].checkedAt == Date(timeIntervalSince1970: 1_795_521_541))
            clock.move(1)
            let later = try await cache.entitlements(of: "kim")
            #expect(!later.grants("pro") && later.grants("themes"))
            #expect(later.entitlements[0].until == nil && later.entitlements[0].endedAt == kept.entitlements[0].until)
            clock.move(301)
            await #expect(throws: PerennialError.self) { try await cache.entitlements(of: "kim") }
        }
    }

    @Test("Without an answer, and for a wrong question, the error comes through")
    func errors() async throws {
        let cache = cache()
        store.say(nil)
        let away = await #expect(throws: PerennialError.self) { try await cache.entitlements(of: "kim") }
        #expect(away?.cause == .unreachable)
        store.say(answer(), .problem(400, "invalid"))
        _ = try await cache.entitlements(of: "kim")
        let wrong = await #expect(throws: PerennialError.self) { try await cache.entitlements(of: "kim") }
        #expect(wrong?.disposition == .reject)
    }

    @Test("After a failure the server is not asked for a while, or for as long as it says")
    func pause() async throws {
        let cache = cache(pauseSeconds: 5)
        store.say(answer(), .problem(503, "unavailable", retryAfter: "20"), answer(at: "12:00:30", granted: false))
        _ = try await cache.entitlements(of: "kim")
        for _ in 0..<3 { #expect(try await cache.entitlements(of: "kim").isStale) }
        #expect(store.requests.count == 2)
        clock.move(21)
        let back = try await cache.entitlements(of: "kim")
        #expect(!back.isStale && !back.grants("pro") && store.requests.count == 3)
    }

    @Test("An older answer does not replace a newer one, and the oldest customers are forgotten")
    func bounds() async throws {
        let cache = cache(customersMax: 10)
        store.say(answer(tag: "new", at: "12:00:10", granted: false), answer(tag: "old"), nil)
        for _ in 0..<2 { _ = try await cache.entitlements(of: "kim") }
        #expect(try await cache.entitlements(of: "kim").grants("pro") == false)
        store.say(answer())
        for number in 0..<30 { _ = try await cache.entitlements(of: "c\(number)") }
        #expect(await cache.count <= 10)
        store.say(nil)
        #expect(try await cache.entitlements(of: "c29").grants("pro"))
        await #expect(throws: PerennialError.self) { try await cache.entitlements(of: "c5") }
        await cache.forget("c29")
        await #expect(throws: PerennialError.self) { try await cache.entitlements(of: "c29") }
    }

    @Test("A batch has at most 1,000 customers, and the answer names the same ones")
    func batch() async throws {
        let server = store.server()
        #expect(try await server.entitlements(ofEach: []).isEmpty && store.requests.isEmpty)
        let many = (0...1_000).map { "c\($0)" }
        let error = await #expect(throws: PerennialError.self) { try await server.entitlements(ofEach: many) }
        #expect(error?.cause == .invalid && store.requests.isEmpty)
        let one = #"{"customer":"kim","stale":true,"max_age_s":null,"entitlements":[]}"#
        store.say(ScriptedServer.Answer(body: #"{"at":"2026-11-24T12:00:00.000Z","customers":[\#(one)]}"#))
        let found = try await server.entitlements(ofEach: ["kim"])
        #expect(found[0].isStale && found[0].maxAgeSeconds == nil)
        #expect(found[0].at == Date(timeIntervalSince1970: 1_795_521_600))
        await #expect(throws: PerennialError.self) { try await server.entitlements(ofEach: ["bob"]) }
    }
}
