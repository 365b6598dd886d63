import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("Devices upload a receipt for each transaction") struct UploadTests {
    static let seed: UInt64 = 47

    @Test("Each renewal uploads a new receipt")
    func aNewReceiptAtEachRenewal() throws {
        let hand = ManualClock()
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
    @Test("A list of uploads since an instant misses none")
    func sinceMissesNothing() throws {
        print("seed \(Self.seed)")
        let hand = ManualClock()
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

    @Test("A device may hold a receipt of any time, without a date, or of another app")
    func heldReceipts() throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        let customer = store.createCustomer(CustomerScript()).customer
        let bought = ManualClock.start
        hand.move(seconds: 190)
        let now = bought + 190_000
        func ask(_ writtenAt: Int64, restore: Int = 0, _ kind: DeviceReceipt = .dated) throws -> [String: Any] {
            try store.ask(try #require(store.receipt(of: customer, writtenAt: writtenAt, restore: restore, kind)))
        }
        let newest = try ask(now)
        let oldest = try ask(.min)
        #expect(newest.deviceRows.count > 1 && oldest.deviceRows.count == 1)
        #expect(oldest.latestRows.count == newest.latestRows.count)
        #expect(try ask(now, restore: 3).deviceRows.count == newest.deviceRows.count)
        let undated = try ask(now, .undated)
        #expect(undated["latest_receipt_info"] is [String: Any] && undated["environment"] == nil)
        let foreign = try ask(now, .foreign)
        #expect((foreign["receipt"] as? [String: Any])?["bundle_id"] as? String == "com.example.tracker.other")
        #expect(store.receipt(of: "c000099", writtenAt: now) == nil)
    }

    @Test("The control API gives a held receipt, and says which words it knows")
    func heldReceiptsOverTheControlAPI() throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        let customer = store.createCustomer(CustomerScript()).customer
        let path = "/simulator/receipts/\(customer)"
        let given = try store.control("GET", "\(path)?kind=undated&at=\(ManualClock.start)").json["receipt"] as? String
        #expect(given == store.receipt(of: customer, writtenAt: ManualClock.start, .undated))
        #expect(try store.control("GET", "\(path)?kind=old").code == 400)
        #expect(try store.control("GET", "\(path)?restore=5").code == 400)
        #expect(try store.control("GET", "/simulator/receipts/c000099").code == 404)
    }

    @Test("The control API serves the uploads")
    func overTheControlAPI() throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        _ = store.createCustomer(CustomerScript())
        let json = try store.control("GET", "/simulator/uploads?since=\(ManualClock.start - 1)").json
        let upload = try #require((json["uploads"] as? [[String: Any]])?.first)
        #expect(upload["customer"] as? String == "c000000" && upload["reason"] as? String == "purchase")
        #expect(json["now_ms"] as? Int64 == ManualClock.start)
        let since = try store.control("GET", "/simulator/uploads?since=\(ManualClock.start)").json
        #expect((since["uploads"] as? [Any])?.count == 0)
        let lines = store.respond(to: SimulatorRequest(method: "GET", path: "/simulator/uploads?format=ndjson"))
        #expect(lines.body.split(separator: UInt8(ascii: "\n")).count == 1)
    }
}
