import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("A group's seats are shown as Apple shows them") struct SeatTests {
    private let hand = ManualClock()
    private let client: ServerClient

    init() throws { client = try ServerClient(hand.emptyStore(), hand) }

    private var store: Simulator { client.store }

    private func act(_ kind: CustomerAction.Kind, _ seats: Int, on customer: SimulatedCustomer) throws {
        var action = CustomerAction(kind)
        action.seats = seats
        #expect(try store.act(action, on: customer.customer))
    }

    private func group(_ seats: Int) -> SimulatedCustomer {
        var script = CustomerScript()
        script.seats = seats
        return store.createCustomer(script)
    }

    private func history(_ customer: SimulatedCustomer) throws -> [[String: Any]] {
        try client.pages("v2/history/\(customer.originalTransactionID)").flatMap(\.transactions)
            .sorted { ($0.number("purchaseDate") ?? 0) < ($1.number("purchaseDate") ?? 0) }
    }

    private func renewal(_ customer: SimulatedCustomer) throws -> (claims: [String: Any], status: Int?) {
        let answer = try client.call("GET", "v1/subscriptions/\(customer.originalTransactionID)").json
        let last = try #require(
            (answer["data"] as? [[String: Any]])?.first?["lastTransactions"] as? [[String: Any]]
        ).first
        return (SignedClaims.of(last?.text("signedRenewalInfo") ?? ""), last?["status"] as? Int)
    }

    private func total(_ claims: [String: Any], _ key: String = "priceTiers") -> Int64 {
        let tiers = (claims["multiSeatInfo"] as? [String: Any])?[key] as? [[String: Any]] ?? []
        return tiers.reduce(0) { $0 + ($1.number("price") ?? 0) * ($1.number("quantity") ?? 0) }
    }

    @Test("The tiers add up, and the price is the average of a seat", arguments: [1, 5, 6, 20, 21, 37])
    func tiers(seats: Int) throws {
        let text = try history(group(seats))[0]
        #expect(text.number("quantity") == Int64(seats))
        let paid = try #require(store.truth().first).subscriptions[0].periods[0].paid
        #expect(total(text) == paid)
        let price = try #require(text.number("price"))
        #expect(price == paid / Int64(seats) && price * Int64(seats) <= paid)
    }

    @Test("Added seats are a second transaction of the same period, and both say so")
    func added() throws {
        let customer = group(7)
        hand.move(seconds: 20)
        try act(.addSeats, 3, on: customer)
        let rows = try history(customer)
        #expect(rows.map { $0.number("quantity") } == [7, 3])
        #expect(rows.map { $0.text("additionalTransactionReason") } == ["SEAT_ADDITION", "SEAT_ADDITION"])
        #expect(rows[0].number("expiresDate") == rows[1].number("expiresDate"))
        #expect(Set(rows.map { $0.text("originalTransactionId") }).count == 1)
        hand.move(seconds: 41)
        let next = try #require(try history(customer).last)
        #expect(next.number("quantity") == 10 && next["additionalTransactionReason"] == nil)
    }

    @Test("Fewer seats are for the next renewal")
    func reduced() throws {
        store.notify(NotificationOptions(url: "http://localhost:1"))
        let customer = group(7)
        try act(.reduceSeats, 2, on: customer)
        let claims = try renewal(customer).claims
        #expect(claims.number("renewalQuantity") == 5)
        #expect(claims.number("renewalPrice") == total(claims, "renewalPriceTiers") / 5)
        #expect(try history(customer)[0].number("quantity") == 7)
        hand.move(seconds: 61)
        #expect(try #require(try history(customer).last).number("quantity") == 5)
        store.collectNotifications()
        #expect(store.notifications.made().map(\.occasion.name.subtype) == ["INITIAL_BUY", "DECREASE_QUANTITY", nil])
    }

    @Test("Refunded seats take no access until the last one is gone")
    func refunded() throws {
        store.notify(NotificationOptions(url: "http://localhost:1"))
        let customer = group(4)
        hand.move(seconds: 10)
        try act(.refundSeats, 1, on: customer)
        var row = try history(customer)[0]
        #expect((row["multiSeatInfo"] as? [String: Any])?.number("revokedSeatQuantity") == 1)
        #expect(row["revocationDate"] == nil)
        var truth = try #require(store.truth(of: customer.customer)).subscriptions[0]
        #expect(truth.periods[0].returned == truth.periods[0].paid / 4 && truth.access == .paid)
        try act(.refundSeats, 3, on: customer)
        row = try history(customer)[0]
        #expect(row["revocationDate"] != nil)
        #expect(try renewal(customer).status == 5)
        truth = try #require(store.truth(of: customer.customer)).subscriptions[0]
        #expect(truth.periods[0].returned == truth.periods[0].paid && truth.access == .none)
        store.collectNotifications()
        let names = store.notifications.made().map { "\($0.occasion.name.type) \($0.occasion.name.subtype ?? "")" }
        #expect(names.contains("REFUND SEATS") && names.contains("REFUND "))
    }

    @Test("One refunded transaction of two leaves the group its access")
    func oneOfTwo() throws {
        let customer = group(4)
        hand.move(seconds: 10)
        try act(.addSeats, 2, on: customer)
        try act(.refundSeats, 2, on: customer)
        let rows = try history(customer)
        #expect(rows.map { $0["revocationDate"] != nil } == [false, true])
        let (claims, status) = try renewal(customer)
        #expect(status == 1 && claims.number("autoRenewStatus") == 1 && claims.number("renewalQuantity") == 4)
        hand.move(seconds: 60)
        #expect(try history(customer).count == 3)
    }

    @Test("A member's texts repeat the seats and prices, and cost nothing")
    func member() throws {
        let customer = store.createCustomer(ScriptKind.newcomer.script)
        var claim = CustomerAction(.claimSeat)
        claim.seats = 7
        #expect(try store.act(claim, on: customer.customer))
        let id = try #require(store.truth(of: customer.customer)).subscriptions[0].originalTransactionID
        let text = try #require(
            try client.pages("v2/history/\(id)?inAppOwnershipType=ASSIGNED").flatMap(\.transactions).first)
        #expect(text.text("inAppOwnershipType") == "ASSIGNED" && text.number("quantity") == 7 && total(text) > 0)
        #expect(text["webOrderLineItemId"] == nil)
        for kind in [CustomerAction.Kind.disableRenewal, .refund, .addSeats, .revokeFamily] {
            #expect(throws: ActionRefused.self) { try store.act(kind.action, on: customer.customer) }
        }
        #expect(try store.act(CustomerAction.Kind.revokeSeat.action, on: customer.customer))
        let truth = try #require(store.truth(of: customer.customer)).subscriptions[0]
        #expect(truth.access == .none && truth.periods[0].paid == 0 && truth.ownership == "ASSIGNED")
        let revoked = try client.pages("v2/history/\(id)").flatMap(\.transactions)[0]
        #expect(revoked["revocationDate"] != nil && revoked["revocationPercentage"] == nil)
    }

    @Test("A group cannot have less than a seat, nor give back what it does not have")
    func refusals() throws {
        let customer = group(2)
        for (kind, seats) in [
            (CustomerAction.Kind.reduceSeats, 2), (.reduceSeats, 0), (.addSeats, 0), (.addSeats, 1000),
            (.refundSeats, 3), (.refundSeats, -1), (.upgrade, 1), (.redeemOffer, 1),
        ] {
            var action = CustomerAction(kind)
            action.seats = seats
            #expect(throws: ActionRefused.self, "\(kind)") { try store.act(action, on: customer.customer) }
        }
        #expect(try #require(store.truth(of: customer.customer)).subscriptions[0].log.count == 1)
    }
}
