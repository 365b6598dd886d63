import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("One address sells a second app, whose customers live at the speed of the calendar") struct NeighbourTests {
    private static let day: Int64 = 86_400_000

    /// A store with months of a minute beside one whose first customers came a year ago.
    private func stores(_ hand: ManualClock) -> Simulator {
        var options = SimulatorOptions(seed: 7)
        options.customers = 5
        options.sandboxCustomers = 0
        let calendar = options.calendarApp("com.example.journal", customers: 120, at: ManualClock.start)
        return Simulator(options, clock: hand.clock, beside: Simulator(calendar, clock: hand.clock))
    }

    private func lines(_ store: Simulator, _ path: String) throws -> [[String: String]] {
        let reply = store.respond(to: SimulatorRequest(method: "GET", path: path, body: []))
        #expect(reply.code == 200, "\(path)")
        return try String(decoding: reply.body, as: UTF8.self).split(separator: "\n").map {
            try JSONDecoder().decode([String: String].self, from: Data($0.utf8))
        }
    }

    @Test("Each receipt is answered by the store that wrote it, for its own app")
    func eachItsOwn() throws {
        let store = stores(ManualClock())
        for (query, app, count) in [
            ("", "com.example.tracker", 5), ("&app=com.example.tracker", "com.example.tracker", 5),
            ("&app=com.example.journal", "com.example.journal", 119),
        ] {
            let found = try lines(store, "/simulator/receipts?format=ndjson\(query)")
            #expect(abs(found.count - count) <= 1 && found.allSatisfy { $0["app"] == app }, "\(query): \(found.count)")
            for line in found.prefix(20) {
                let answer = try store.ask(try #require(line["receipt"]))
                if answer.status == 21010 { continue }
                let receipt = try #require(answer["receipt"] as? [String: Any])
                #expect(answer.status == 0 || answer.status == 21006)
                #expect((receipt["bundle_id"] ?? receipt["bid"]) as? String == app)
            }
        }
        #expect(try store.control("GET", "/simulator/truth?app=com.example.none").code == 404)
        let truth = try store.control("GET", "/simulator/truth/c1000000?app=com.example.journal")
        #expect(truth.json["app"] as? String == "com.example.journal")
        #expect(try store.control("GET", "/simulator/truth/c1000000").code == 404)
    }

    @Test("A kept key of servers is good for the apps of both stores")
    func serverKey() throws {
        let store = stores(ManualClock())
        let key = PretendServerKey()
        store.accept(try PretendServerKey(pem: key.pem))
        for one in [store, try #require(store.neighbour)] {
            #expect(one.serverKeys.key(PretendServerKey.id)?.issuerID == PretendServerKey.issuerID)
        }
        #expect(throws: (any Error).self) { try PretendServerKey(pem: "nothing") }
    }

    @Test("The year before the epoch has renewals, refunds, trials and lapses, and lives go on day by day")
    func year() throws {
        let hand = ManualClock()
        let store = try #require(stores(hand).neighbour)
        let events = store.truth().flatMap { $0.subscriptions.flatMap(\.log) }
        for kind in [LifeEventKind.renewed, .refunded, .trialStarted, .lapsed, .resubscribed] {
            #expect(events.contains { $0.kind == kind }, "\(kind)")
        }
        let first = try #require(events.map(\.atMilliseconds).min())
        #expect((ManualClock.start - 365 * Self.day...ManualClock.start - 350 * Self.day).contains(first))
        let before = store.uploads().count
        hand.move(seconds: 86_400)
        #expect((1...20).contains(store.uploads().count - before))
        hand.move(seconds: 10 * 86_400)
        #expect(store.customerCount > 120)
    }
}
