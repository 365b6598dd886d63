import Foundation
import Testing

@testable import AppStoreSimulator

@Suite struct UploadTests {
    static let seed: UInt64 = 47

    @Test func aNewReceiptAtEachRenewal() throws {
        let hand = HandClock()
        let store = hand.emptyStore()
        var script = ScriptKind.resubscribes.script
        script.sendsRenewals = true
        let customer = store.createCustomer(script)
        hand.move(seconds: 190)
        let uploads = store.uploads()
        #expect(uploads.map { $0.reason } == [.purchase, .resubscription, .renewal])
        #expect(Set(uploads.map { $0.receipt }).count == 3)
        #expect(uploads[0].receipt == customer.receipt)
        for (number, upload) in uploads.enumerated() {
            let answer = try store.ask(upload.receipt)
            #expect(answer.deviceRows.count == number + 1 && answer.latestRows.count == 3)
        }
        #expect(store.uploads(since: uploads[1].at).map { $0.reason } == [.renewal])
        #expect(store.uploads(until: uploads[1].at).count == 2)
    }

    /// Asking often since the last time misses nothing and tells nothing twice.
    @Test func sinceMissesNothing() throws {
        print("seed \(Self.seed)")
        let hand = HandClock()
        var options = SimulatorOptions(seed: Self.seed)
        options.customers = 60
        options.arrivalsPerMonth = 20
        let store = Simulator(options, clock: hand.clock)
        var collected: [String] = []
        var last = Int64.min
        for _ in 0..<80 {
            let now = hand.clock.milliseconds()
            collected += store.uploads(since: last).map { "\($0.customer) \($0.at) \($0.receipt)" }
            last = now
            hand.move(seconds: 2.477)
        }
        let all = store.uploads(until: last).map { "\($0.customer) \($0.at) \($0.receipt)" }
        #expect(collected.sorted() == all.sorted(), "seed \(Self.seed)")
        #expect(Set(all).count == all.count)
        #expect(store.uploads(until: last).contains { $0.customer.hasPrefix("c100") })
        for reason in UploadReason.allCases {
            #expect(store.uploads(until: last).contains { $0.reason == reason }, "seed \(Self.seed): \(reason)")
        }
    }

    @Test func overTheControlAPI() throws {
        let hand = HandClock()
        let store = hand.emptyStore()
        _ = store.createCustomer(CustomerScript())
        let json = try store.control("GET", "/simulator/uploads?since=\(HandClock.start - 1)").json
        let upload = try #require((json["uploads"] as? [[String: Any]])?.first)
        #expect(upload["customer"] as? String == "c000000" && upload["reason"] as? String == "purchase")
        #expect(json["now_ms"] as? Int64 == HandClock.start)
        let since = try store.control("GET", "/simulator/uploads?since=\(HandClock.start)").json
        #expect((since["uploads"] as? [Any])?.count == 0)
        let lines = store.respond(to: SimulatorRequest(method: "GET", path: "/simulator/uploads?format=ndjson"))
        #expect(lines.body.split(separator: UInt8(ascii: "\n")).count == 1)
    }
}
