import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("The truth of an instant stays the same, whenever it is read") struct TruthTests {
    static let seed: UInt64 = 31

    private func text(_ truth: [CustomerTruth]) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return String(decoding: try encoder.encode(truth), as: UTF8.self)
    }

    @Test("A truth of the past is the past as it was")
    func thePastIsToldAsItWas() throws {
        print("seed \(Self.seed)")
        let hand = ManualClock()
        var options = SimulatorOptions(seed: Self.seed)
        options.customers = 80
        options.arrivalsPerMonth = 5
        let store = Simulator(options, clock: hand.clock)
        var then: [(at: Int64, truth: String)] = []
        for _ in 0..<12 {
            hand.move(seconds: 25.3)
            let now = hand.clock.milliseconds()
            then.append((now, try text(store.truth())))
            hand.move(seconds: 0.001)
            for customer in ["c000003", "c000005", "c000070"] {
                for kind in [CustomerAction.Kind.extend, .refund, .resubscribe, .failBilling] {
                    _ = try? store.act(kind.action, on: customer)
                }
            }
        }
        for moment in then {
            #expect(try text(store.truth(at: moment.at)) == moment.truth, "at \(moment.at), seed \(Self.seed)")
        }
        #expect(store.truth(at: then[11].at).count > store.truth(at: then[0].at).count)
    }

    @Test("A truth of the future changes nothing")
    func theFutureIsToldAndNotLived() throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        let customer = store.createCustomer(CustomerScript())
        #expect(
            store.truth(of: customer.customer, at: ManualClock.start + 130_000)?.subscriptions[0].periods.count == 3)
        #expect(store.truth(of: customer.customer)?.subscriptions[0].periods.count == 1)
        #expect(store.truth(of: customer.customer, at: ManualClock.start - 1) == nil)
    }

    @Test("Access follows Apple's data")
    func access() throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        let customer = store.createCustomer(ScriptKind.graceEnds.script)
        func access(after seconds: Int64) -> AccessTruth? {
            store.truth(of: customer.customer, at: ManualClock.start + seconds * 1000)?.subscriptions.first?.access
        }
        #expect(access(after: 59) == .paid)
        #expect(access(after: 60) == .grace)
        #expect(access(after: 91) == .grace)
        #expect(access(after: 92) == AccessTruth.none)
    }

    @Test("The control API serves the truth")
    func overTheControlAPI() throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        _ = store.createCustomer(CustomerScript())
        hand.move(seconds: 130)
        func periods(_ query: String) throws -> Int? {
            let json = try store.control("GET", "/simulator/truth/c000000" + query).json
            let subscription = (json["subscriptions"] as? [[String: Any]])?.first
            return (subscription?["periods"] as? [Any])?.count
        }
        #expect(try periods("") == 3)
        #expect(try periods("?at=\(ManualClock.start + 61_000)") == 2)
        #expect(try periods("?at=2025-01-10T09:00:01Z") == 1)
        #expect(try store.control("GET", "/simulator/truth?at=yesterday").code == 400)
        let all = try store.control("GET", "/simulator/truth?at=2025-01-10T09:00:01Z").json
        #expect(all["now_ms"] as? Int == 1_736_499_601_000)
    }
}
