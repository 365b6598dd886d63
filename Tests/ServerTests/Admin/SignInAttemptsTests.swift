import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Subscriptions
import TestSupport
import Testing
import Tracking

@testable import Server

@Suite("Failed sign-ins make the next attempts wait") struct SignInAttemptsTests {
    @Test("A key that failed too often waits and no other does")
    func aKeyThatFailedTooOftenWaitsAndNoOtherDoes() async throws {
        try await AdminWorld.with { world in
            let wrong = "perennial_" + String(repeating: "0", count: 64)
            try await world.serving { browser, _ in
                for _ in 0..<SignInAttempts.failuresMax {
                    #expect(try await browser.signIn(wrong).status == .forbidden)
                }
                let answer = try await browser.signIn(wrong)
                #expect(answer.status == .tooManyRequests && answer.headers[.retryAfter] != nil)
                #expect(browser.cookie == nil)
                #expect(try await browser.signIn("nonsense").status == .forbidden)
                #expect(try await browser.signIn(world.secret).status == .seeOther)
                #expect(try await browser.get("/admin").status == .ok)
            }
        }
    }

    @Test("Failures are counted by address and beginning of the key")
    func failuresAreCountedByAddressAndBeginningOfTheKey() {
        let attempts = SignInAttempts()
        func attempt(_ address: String, _ secret: String) -> SignInAttempts.Attempt {
            .init(from: SourceAddress(address) ?? SourceAddress(ip: []), withSecret: secret)
        }
        let failed = attempt("192.0.2.1", "perennial_0123456789")
        for _ in 0..<SignInAttempts.failuresMax { attempts.count(failed: failed) }
        #expect(attempts.secondsToWait(before: attempt("192.0.2.1", "perennial_01234567ff")) != nil)
        #expect(attempts.secondsToWait(before: attempt("192.0.2.2", "perennial_0123456789")) == nil)
        #expect(attempts.secondsToWait(before: attempt("192.0.2.1", "perennial_1123456789")) == nil)
        for number in 0..<SignInAttempts.attemptsMax { attempts.count(failed: attempt("192.0.2.3", "\(number)")) }
        #expect(attempts.secondsToWait(before: failed) == nil, "more is remembered than there is room for")
    }

    @Test(
        "The last address that is no trusted proxy's counts",
        arguments: [
            // setting, peer, headers, source
            ("", "192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
            ("", "127.0.0.1", ["198.51.100.7, 10.0.0.3"], "10.0.0.3"),
            ("10.0.0.0/8", "127.0.0.1", ["198.51.100.7, 10.0.0.3"], "198.51.100.7"),
            ("10.0.0.0/8", "10.200.0.9", ["203.0.113.5, 198.51.100.7"], "198.51.100.7"),
            ("10.0.0.0/8", "10.200.0.9", ["203.0.113.5", "198.51.100.7, 10.1.1.1"], "198.51.100.7"),
            ("10.0.0.7,10.0.0.8", "10.0.0.8", ["198.51.100.7,10.0.0.7"], "198.51.100.7"),
            ("10.0.0.7", "10.0.0.8", ["198.51.100.7"], "10.0.0.8"),
            ("10.0.0.0/9", "10.127.255.255", ["198.51.100.7"], "198.51.100.7"),
            ("10.0.0.0/9", "10.128.0.0", ["198.51.100.7"], "10.128.0.0"),
            ("10.0.0.0/8", "10.0.0.1", ["10.0.0.2, 10.0.0.3"], "10.0.0.2"),
            ("10.0.0.0/8", "10.0.0.1", ["198.51.100.7, nonsense, 10.0.0.3"], "10.0.0.3"),
            ("10.0.0.0/8", "10.0.0.1", [], "10.0.0.1"),
            ("10.0.0.0/8", "10.0.0.1", ["198.51.100.7:5123"], "198.51.100.7"),
            ("fd00::/8", "fd12::1", ["[2001:db8:1:2:3::4]:443"], "2001:db8:1:2::/64"),
            ("fd00::/8", "fe12::1", ["198.51.100.7"], "fe12:0:0:0::/64"),
            (" 10.0.0.0/8 , fd00::/8 ", "fd12::1", ["198.51.100.7"], "198.51.100.7"),
            ("10.0.0.0/8", "::ffff:10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
            ("0.0.0.0/0", "203.0.113.5", ["2001:db8:1:2::3"], "2001:db8:1:2::/64"),
        ])
    func trustedProxies(_ setting: String, _ peer: String, _ headers: [String], _ source: String) throws {
        let proxies = setting.isEmpty ? TrustedProxies() : try TrustedProxies(setting)
        let address = try SocketAddress(ipAddress: peer, port: 1)
        #expect(proxies.source(of: address, forwarded: headers).description == source)
    }

    @Test(
        "What is no address and no range is refused",
        arguments: [
            "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8/8", "10.0.0.0/-1", "fd00::/129", "proxy.example.com", "10.0.0.1,",
            ",",
            "10.0.0.0/ 8x", "10.0.0.0/0008",
        ])
    func unknownRanges(_ setting: String) {
        #expect(throws: TrustedProxies.UnknownRange.self) { try TrustedProxies(setting) }
    }

    /// Only a proxy on this machine is believed, and of what it passes on only its own word, which is the last.
    @Test("The address is the peer's or what a proxy here says last")
    func theAddressIsThePeersOrWhatAProxyHereSaysLast() async throws {
        try await AdminWorld.with { world in
            let journal = Journal()
            let tracker = Tracker(
                ledger: world.ledger, appStore: .answering(nil), options: TrackerOptions(),
                logger: journal.logger)
            let server = HTTPServer(
                tracker: tracker, metrics: MetricsRegistry(), host: "127.0.0.1", port: 0, logger: .quiet)
            try await server.application.test(.live) { client in
                let browser = Browser(client: client)
                for said in [nil, "198.51.100.7, 192.0.2.9", "nonsense", "2001:db8:1:2:3:4:5:6"] {
                    var headers = HTTPFields()
                    headers[try #require(HTTPField.Name("X-Forwarded-For"))] = said
                    _ = try await browser.post("/admin/session", ["key": "nonsense"], from: headers)
                }
            }
            let reported = journal.lines.compactMap { $0.firstMatch(of: /"address": "?([0-9a-f.:\/]+)/)?.output.1 }
            #expect(reported == ["127.0.0.1", "192.0.2.9", "127.0.0.1", "2001:db8:1:2::/64"], "\(journal.lines)")
        }
    }

    @Test("Failures are forgotten after a while") func failuresAreForgottenAfterAWhile() {
        let clock = ManualClock()
        let attempts = SignInAttempts(now: { clock.now })
        let attempt = SignInAttempts.Attempt(from: SourceAddress(ip: []), withSecret: "nonsense")
        for _ in 0..<SignInAttempts.failuresMax { attempts.count(failed: attempt) }
        #expect(attempts.secondsToWait(before: attempt) == SignInAttempts.stretchSeconds)
        clock.advance(seconds: SignInAttempts.stretchSeconds - 1)
        #expect(attempts.secondsToWait(before: attempt) == 1)
        clock.advance(seconds: 1)
        #expect(attempts.secondsToWait(before: attempt) == nil)
        attempts.count(failed: attempt)
        #expect(attempts.secondsToWait(before: attempt) == nil, "one failure in a new stretch is not too many")
    }
}

/// A clock that moves by hand.
private final class ManualClock: @unchecked Sendable {
    private(set) var now = ContinuousClock.now

    func advance(seconds: Int) { now = now.advanced(by: .seconds(seconds)) }
}
