import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("No number in a request stops the store") struct NumberLimitTests {
    /// A place for a number in a request: `#` stands for the number.
    struct Place: Sendable, CustomTestStringConvertible {
        /// What a refusal names.
        let field: String
        let method: String
        let path: String
        var body = ""

        var testDescription: String { "\(field) of \(method) \(path)" }
    }

    static let extremes = [
        String(Int64.min), String(Int64.max), "0", "-1", "100000000000000000", "1e17", "1e300", "-1e300", "1e-300",
        "1e400", "1e99999", "1e-99999", "99999999999999999999",
    ]

    private static let queries: [Place] = [
        ("at", "truth"), ("from", "truth"), ("count", "truth"), ("at", "truth/c000000"), ("from", "receipts"),
        ("count", "receipts"), ("at", "receipts/c000000"), ("restore", "receipts/c000000"), ("since", "uploads"),
        ("until", "uploads"), ("from", "signed-transactions"), ("count", "signed-transactions"),
        ("since", "signed-uploads"), ("until", "signed-uploads"),
    ].map { field, path in Place(field: field, method: "GET", path: "\(path)?\(field)=#") }

    private static let scripts: [Place] = [
        ("coins_every_months", #""coins_every_months":#"#), ("season_every_months", #""season_every_months":#"#),
        ("second_customer_after_months", #""second_customer_after_months":#"#), ("seats", #""seats":#"#),
        ("past_periods", #""past_periods":#"#),
        ("period", #""steps":[{"action":"fail_billing","at":1,"period":#}]"#),
        ("at", #""steps":[{"action":"fail_billing","period":0,"at":#}]"#),
        ("seats", #""steps":[{"action":"add_seats","period":0,"at":0.5,"seats":#}]"#),
        ("past_periods", #""alongside":[{"product":"magazine.monthly","past_periods":#}]"#),
    ].map { field, members in
        Place(field: field, method: "POST", path: "customers", body: #"{"script":{\#(members)}}"#)
    }

    private static let actions: [Place] = [
        ("seats", "add_seats"), ("seats", "reduce_seats"), ("seats", "refund_seats"), ("seats", "subscribe"),
        ("seats", "claim_seat"), ("seconds", "extend"), ("periods_ago", "refund"), ("reason", "refund"),
        ("subscription", "refund"), ("quantity", "buy"),
    ].map { field, action in
        Place(
            field: field, method: "POST", path: "customers/c000001/actions",
            body: #"{"action":"\#(action)","\#(field)":#}"#)
    }

    private static let settings: [Place] = [
        ("status", "faults", #""kind":"status","channel":"server_api","status":#"#),
        ("status", "faults", #""kind":"status","status":#"#), ("code", "faults", #""kind":"http","code":#"#),
        ("seconds", "faults", #""kind":"slow","seconds":#"#), ("share", "faults", #""kind":"html","share":#"#),
        ("until", "faults", #""kind":"html","until":#"#), ("seconds", "lag", #""seconds":#"#),
        ("share", "lag", #""seconds":1,"share":#"#), ("per_second", "rates", #""endpoint":"refunds","per_second":#"#),
        ("url", "notifications", #""url":"http://127.0.0.1:#/""#),
        ("share", "notifications", #""url":"http://127.0.0.1:1/","share_dropped":#"#),
        ("share", "notifications", #""url":"http://127.0.0.1:1/","share_doubled":#"#),
        ("share", "notifications", #""url":"http://127.0.0.1:1/","share_reordered":#"#),
        ("delay_seconds", "notifications", #""url":"http://127.0.0.1:1/","delay_seconds":#"#),
    ].map { field, path, members in Place(field: field, method: "POST", path: path, body: "{\(members)}") }

    static let controlPlaces: [Place] = [queries, scripts, actions, settings].flatMap { $0 }

    static let serverPlaces: [Place] = [
        Place(field: "startDate", method: "GET", path: "v2/history/ID?startDate=#"),
        Place(field: "endDate", method: "GET", path: "v2/history/ID?endDate=#"),
        Place(field: "status", method: "GET", path: "v1/subscriptions/ID?status=#"),
        Place(field: "id", method: "GET", path: "v1/transactions/#"),
        Place(field: "token", method: "GET", path: "v1/notifications/test/3f2504e0-4f89-41d3-9a0c-0305e82c3301_#"),
        Place(
            field: "extendByDays", method: "PUT", path: "v1/subscriptions/extend/ID",
            body: #"{"extendByDays":#,"extendReasonCode":1,"requestIdentifier":"r"}"#),
        Place(
            field: "extendReasonCode", method: "PUT", path: "v1/subscriptions/extend/ID",
            body: #"{"extendByDays":1,"extendReasonCode":#,"requestIdentifier":"r"}"#),
        Place(
            field: "consumptionPercentage", method: "PUT", path: "v2/transactions/consumption/ID",
            body: """
                {"customerConsented":true,"deliveryStatus":"DELIVERED","sampleContentProvided":true,
                 "consumptionPercentage":#}
                """),
    ]

    private let hand = ManualClock()
    private let store: Simulator

    /// A store with a customer for questions, a group for actions, and arrivals.
    init() {
        var options = SimulatorOptions(seed: 7)
        (options.customers, options.sandboxCustomers, options.arrivalsPerMonth) = (0, 0, 20)
        store = Simulator(options, clock: hand.clock)
        _ = store.createCustomer(CustomerScript())
        _ = store.createCustomer(ScriptKind.buysSeats.script)
        hand.move(seconds: 10)
    }

    private func reply(_ method: String, _ path: String, _ body: String = "") -> SimulatorReply {
        store.respond(to: SimulatorRequest(method: method, path: "/simulator/" + path, body: Array(body.utf8)))
    }

    /// The simulator tells about every customer, now and after each period that a script can plan.
    private func stillAnswers() throws {
        for path in ["faults", "lag", "notifications", "rates"] { #expect(reply("DELETE", path).code == 200) }
        hand.move(seconds: 200)
        for path in ["healthz", "receipts", "uploads", "truth?at=\(hand.clock.milliseconds() + 900_000)"] {
            #expect(reply("GET", path).code == 200, "\(path)")
        }
        #expect(try store.ask(store.receipts()[0].receipt).status == 0)
    }

    @Test(
        "A control call with an extreme number is answered, with the field and its range if it is refused",
        arguments: controlPlaces)
    func controlCalls(place: Place) throws {
        for number in Self.extremes {
            let reply = reply(
                place.method, place.path.replacing("#", with: number), place.body.replacing("#", with: number))
            // An action that is read may make no sense, and a customer may not be there at that time.
            #expect([200, 201, 400, 404, 409].contains(reply.code), "\(number): \(reply.code)")
            guard reply.code == 400, Int64(number) != nil || place.body.isEmpty else { continue }
            let said = String(decoding: reply.body, as: UTF8.self)
            #expect(said.contains(place.field), "\(number): \(said)")
        }
        try stillAnswers()
    }

    @Test("A call of the Server API with an extreme number is answered", arguments: serverPlaces)
    func serverCalls(place: Place) throws {
        let client = try ServerClient(store, hand)
        let id = try #require(store.truth(of: "c000000")).subscriptions[0].originalTransactionID
        for number in Self.extremes + ["570000840000000", "700000000000000000"] {
            let code = try client.call(
                place.method, place.path.replacing("#", with: number).replacing("ID", with: id),
                place.body.replacing("#", with: number)
            ).code
            #expect([200, 202, 400, 404].contains(code), "\(number): \(code)")
        }
        try stillAnswers()
    }

    @Test("Texts that are numbers have no limit that stops the store")
    func numbersInTexts() throws {
        for number in Self.extremes {
            for action in ["finish", "refund_purchase", "refund", "request_refund"] {
                let made = reply(
                    "POST", "customers/c000000/actions", #"{"action":"\#(action)","transaction_id":"\#(number)"}"#)
                #expect(made.code == 409, "\(action) \(number): \(made.code)")
            }
            #expect(reply("GET", "truth/c\(number)").code == 404, "\(number)")
        }
        for instant in ["999999999999999999999-01-01T00:00:00Z", "-9999-01-01T00:00:00Z", "12345-01-01T00:00:00Z"] {
            #expect(reply("GET", "truth?at=\(instant)").code == 400, "\(instant)")
            let fault = reply("POST", "faults", #"{"kind":"html","until":"\#(instant)"}"#)
            #expect(fault.code == 400, "\(instant)")
        }
        try stillAnswers()
    }

    @Test("Seats stay within their limit, however often more are bought")
    func seatsAddUp() throws {
        func add() -> Int { reply("POST", "customers/c000001/actions", #"{"action":"add_seats","seats":900}"#).code }
        let codes = (0..<3).map { _ in add() }
        #expect(codes == [200, 409, 409])
        var action = CustomerAction(.addSeats)
        action.seats = .max
        #expect(throws: ActionRefused.self) { try store.act(action, on: "c000001") }
    }

    @Test("A truth goes 1200 months ahead, and a list has at most a million customers")
    func listsAreLimited() {
        let month: Int64 = 60_000
        func truth(after months: Int64) -> Int {
            reply("GET", "truth?count=1&at=\(hand.clock.milliseconds() + months * month)").code
        }
        #expect(truth(after: 1200) == 200 && truth(after: 1201) == 400)
        var options = SimulatorOptions(seed: 7)
        options.customers = Simulator.listedMax
        options.arrivalsPerMonth = 10
        let crowded = Simulator(options, clock: hand.clock)
        func code(_ path: String) -> Int {
            crowded.respond(to: SimulatorRequest(method: "GET", path: "/simulator/" + path)).code
        }
        for path in ["truth", "receipts", "signed-transactions"] {
            #expect(code(path) == 400 && code("\(path)?count=1000001") == 400, "\(path)")
            #expect(code("\(path)?count=1") == 200 && code("\(path)?from=1000000") == 200, "\(path)")
        }
    }

    @Test("Arrivals are counted at every instant and rate, and have ids of their own environment")
    func arrivals() {
        for (rate, months) in [(1e7, 1.0), (1e7, 31_622_400), (1e-300, 1), (1e-300, 31_622_400), (3, 60)] {
            var options = SimulatorOptions(seed: 7)
            (options.arrivalsPerMonth, options.monthSeconds) = (rate, months)
            let population = Population(options, epoch: StoreTime(milliseconds: 0))
            for moment in [Int64.min, -1, 0, 1, 999, 1000, StoreTime.nameable.upperBound] {
                let count = population.arrivals(at: StoreTime(milliseconds: moment))
                #expect((0...Population.arrivalsMax).contains(count), "\(rate) \(months) \(moment)")
                #expect(moment > 0 || count == 0)
                guard count > 0 else { continue }
                let last = population.account(population.firstArrival + count - 1)
                #expect(last.start <= StoreTime(milliseconds: moment))
                let owner = AccountIDs.owner(of: last.ids.purchase(0), at: .production)
                #expect(owner?.index == last.index)
                #expect(AccountIDs.owner(of: last.ids.purchase(0), at: .sandbox) == nil)
            }
        }
    }
}
