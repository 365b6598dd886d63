import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("The control API changes and describes the store") struct ControlTests {
    let hand = ManualClock()
    let store: Simulator

    init() { store = hand.emptyStore() }

    @Test("The control API creates customers, acts for them and says what is true")
    func createActAndTruth() throws {
        let made = try store.control("POST", "/simulator/customers", #"{"kind":"loyal","environment":"sandbox"}"#)
        #expect(made.code == 201)
        let name = try #require(made.json["customer"] as? String)
        #expect(made.json["environment"] as? String == "Sandbox")
        #expect(made.json["original_transaction_id"] as? String == "2000000000000000")
        hand.move(seconds: 1)
        let acted = try store.control("POST", "/simulator/customers/\(name)/actions", #"{"action":"refund"}"#)
        #expect(acted.code == 200)
        let again = try store.control("POST", "/simulator/customers/\(name)/actions", #"{"action":"refund"}"#)
        #expect(again.code == 409 && again.json["error"] != nil)
        let truth = try store.control("GET", "/simulator/truth/\(name)").json
        let subscription = try #require((truth["subscriptions"] as? [[String: Any]])?.first)
        let log = try #require(subscription["log"] as? [[String: Any]])
        #expect(log.map { $0["kind"] as? String } == ["purchased", "refunded", "renewal_disabled"])
        #expect(log[1]["at"] as? String == "2025-01-10T09:00:01Z")
        #expect(log[1]["transaction_id"] as? String == "2000000000000000")
    }

    @Test("A customer may have a script of its own")
    func aScriptOfOnesOwn() throws {
        let body = """
            {"script":{"product":"weekly","trial":true,"grace":true,"past_periods":1,"charge":"late",
             "steps":[{"period":1,"at":0.5,"action":"refund","keep_renewal":true,"reason":1}]}}
            """
        let made = try store.control("POST", "/simulator/customers", body)
        let name = try #require(made.json["customer"] as? String)
        hand.move(seconds: 10)
        let log = try #require(store.truth(of: name)?.subscriptions.first?.log)
        #expect(log.map { $0.kind } == [.trialStarted, .converted, .refunded])
    }

    @Test("Receipts are ready to import")
    func receiptsAreReadyToImport() throws {
        var options = SimulatorOptions(seed: 9)
        options.customers = 20
        options.sandboxCustomers = 3
        options.traits = .none
        let store = Simulator(options, clock: hand.clock)
        let reply = store.respond(to: SimulatorRequest(method: "GET", path: "/simulator/receipts?format=ndjson"))
        let lines = String(decoding: reply.body, as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 23)
        for line in lines {
            let parsed = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String]
            let object = try #require(parsed)
            #expect(Set(object.keys) == ["app", "customer", "receipt"])
            #expect(object["app"] == "com.example.tracker")
            let status = try store.ask(try #require(object["receipt"])).status
            #expect(status == 0 || status == 21007 || status == 21010)
        }
        let some = store.respond(
            to: SimulatorRequest(method: "GET", path: "/simulator/receipts?format=ndjson&from=20&count=2"))
        #expect(some.body.split(separator: UInt8(ascii: "\n")).count == 2)
    }

    @Test("Bad requests are refused with a reason")
    func whatIsRefused() throws {
        #expect(try store.control("GET", "/simulator/healthz").code == 200)
        #expect(try store.control("GET", "/simulator/nothing").code == 404)
        #expect(try store.control("GET", "/simulator/truth/c000001").code == 404)
        #expect(try store.control("POST", "/simulator/customers", "{").code == 400)
        #expect(try store.control("POST", "/simulator/customers", #"{"kind":"ghost"}"#).code == 400)
        #expect(try store.control("POST", "/simulator/customers", #"{"environment":"Moon"}"#).code == 400)
        for odd in [
            #"{"kind":"html","share":2}"#, #"{"kind":"slow","seconds":1e300}"#, #"{"kind":"hang","seconds":-1}"#,
            #"{"kind":"http","code":99999}"#,
        ] {
            #expect(try store.control("POST", "/simulator/faults", odd).code == 400, "\(odd)")
        }
        #expect(store.respond(to: SimulatorRequest(method: "GET", path: "/")).code == 404)
    }

    @Test("Faults take their share and end")
    func faultsTakeTheirShareAndEnd() throws {
        let customer = store.createCustomer(CustomerScript())
        let body = try JSONSerialization.data(withJSONObject: [
            "receipt-data": customer.receipt, "password": store.sharedSecret,
        ])
        func calls(_ count: Int) -> [SimulatorReply] {
            (0..<count).map { _ in
                store.respond(to: SimulatorRequest(method: "POST", path: "/verifyReceipt", body: Array(body)))
            }
        }
        let until = ManualClock.start + 10_000
        #expect(
            try store.control(
                "POST", "/simulator/faults", #"{"kind":"http","code":500,"share":0.25,"until":\#(until)}"#
            ).code == 200)
        let share = calls(2000).filter { $0.code == 500 }.count
        #expect((400...600).contains(share), "seed 7 gave \(share) of 2000")
        hand.move(seconds: 10)
        #expect(calls(200).allSatisfy { $0.code == 200 })
    }

    @Test("Every fault shows")
    func everyFaultShows() throws {
        func reply(_ fault: String) throws -> SimulatorReply {
            _ = try store.control("DELETE", "/simulator/faults")
            #expect(try store.control("POST", "/simulator/faults", fault).code == 200)
            return store.respond(to: SimulatorRequest(method: "POST", path: "/verifyReceipt", body: Array("{}".utf8)))
        }
        #expect(try reply(#"{"kind":"status"}"#).body == Array(#"{"status":21005}"#.utf8))
        #expect(
            try reply(#"{"kind":"status","status":21104,"is_retryable":true}"#).body
                == Array(#"{"status":21104,"is-retryable":true}"#.utf8))
        #expect(try reply(#"{"kind":"http"}"#).code == 503)
        #expect(try reply(#"{"kind":"html"}"#).body.first == UInt8(ascii: "<"))
        #expect(try reply(#"{"kind":"truncate"}"#).delivery == .cut(bytes: 8))
        #expect(try reply(#"{"kind":"hang","seconds":3}"#).delivery == .never)
        #expect(try reply(#"{"kind":"slow","seconds":2}"#).delaySeconds == 2)
        #expect(
            try reply(#"{"kind":"html","until":"2025-01-10T09:00:00Z"}"#).body == Array(#"{"status":21002}"#.utf8))
    }
}
