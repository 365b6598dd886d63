import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("A store notifies about what happens to its customers") struct NotificationTests {
    private let hand = ManualClock()

    private func start(_ store: Simulator, _ members: String = "") throws {
        let made = try store.control(
            "POST", "/simulator/notifications", #"{"url":"http://127.0.0.1:1/"\#(members)}"#)
        #expect(made.code == 200, "\(made.json)")
    }

    private func list(_ store: Simulator, _ query: String = "") throws -> [NotificationTruth] {
        let reply = store.respond(to: SimulatorRequest(method: "GET", path: "/simulator/notifications?\(query)"))
        return try JSONDecoder().decode([NotificationTruth].self, from: Data(reply.body))
    }

    @Test(
        "Each life has Apple's types and subtypes in their order",
        arguments: [
            (.loyal, "SUBSCRIBED/INITIAL_BUY DID_RENEW DID_RENEW"),
            (.cancels, "SUBSCRIBED/INITIAL_BUY DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED EXPIRED/VOLUNTARY"),
            (
                .refunded,
                "SUBSCRIBED/INITIAL_BUY DID_RENEW DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED REFUND"
            ),
            (
                .refundReversed,
                "SUBSCRIBED/INITIAL_BUY DID_RENEW DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED "
                    + "REFUND REFUND_REVERSED EXPIRED/VOLUNTARY"
            ),
            (
                .graceRecovers,
                "SUBSCRIBED/INITIAL_BUY DID_FAIL_TO_RENEW/GRACE_PERIOD DID_RENEW/BILLING_RECOVERY DID_RENEW"
            ),
            (.graceEnds, "SUBSCRIBED/INITIAL_BUY DID_FAIL_TO_RENEW/GRACE_PERIOD GRACE_PERIOD_EXPIRED"),
            (.retryRecovers, "SUBSCRIBED/INITIAL_BUY DID_FAIL_TO_RENEW DID_RENEW/BILLING_RECOVERY"),
            (.upgrades, "SUBSCRIBED/INITIAL_BUY DID_RENEW DID_CHANGE_RENEWAL_PREF/UPGRADE"),
            (.downgrades, "SUBSCRIBED/INITIAL_BUY DID_CHANGE_RENEWAL_PREF/DOWNGRADE DID_RENEW DID_RENEW"),
            (
                .priceAccepted,
                "SUBSCRIBED/INITIAL_BUY DID_RENEW PRICE_INCREASE/PENDING PRICE_INCREASE/ACCEPTED DID_RENEW"
            ),
            (.priceRefused, "SUBSCRIBED/INITIAL_BUY DID_RENEW PRICE_INCREASE/PENDING EXPIRED/PRICE_INCREASE"),
            (.withdrawn, "SUBSCRIBED/INITIAL_BUY DID_RENEW EXPIRED/PRODUCT_NOT_FOR_SALE"),
            (.brokenOff, "SUBSCRIBED/INITIAL_BUY DID_RENEW EXPIRED"),
            (.promotionalOffer, "SUBSCRIBED/INITIAL_BUY OFFER_REDEEMED DID_RENEW DID_RENEW"),
            (.extended, "SUBSCRIBED/INITIAL_BUY DID_RENEW RENEWAL_EXTENDED"),
            (.familyRevoked, "SUBSCRIBED/INITIAL_BUY DID_RENEW REVOKE"),
            (.deletesAccount, "SUBSCRIBED/INITIAL_BUY DID_RENEW"),
        ] as [(ScriptKind, String)])
    func types(kind: ScriptKind, expected: String) throws {
        let store = hand.emptyStore()
        try start(store)
        let customer = store.createCustomer(kind.script)
        hand.move(seconds: 125)
        let found = try list(store, "customer=\(customer.customer)")
        let names = found.map { made in [made.type, made.subtype].compactMap(\.self).joined(separator: "/") }
        // Events of one instant have no order.
        #expect(names.sorted() == expected.split(separator: " ").map(String.init).sorted())
        #expect(found.map(\.signed) == found.map(\.signed).sorted() && found[0].type == "SUBSCRIBED")
    }

    @Test("A name that no customer has gets no notifications, not those of no customer")
    func unknownCustomer() throws {
        let store = hand.emptyStore()
        let client = try ServerClient(store, hand)
        try start(store)
        _ = store.createCustomer(CustomerScript())
        #expect(try client.call("POST", "v1/notifications/test").code == 200)
        #expect(try list(store).contains { $0.customer == nil })
        for name in ["ghost", "", "c000099"] {
            #expect(try list(store, "customer=\(name)").isEmpty, "\(name)")
        }
        #expect(try list(store, "customer=c000000").map(\.type) == ["SUBSCRIBED"])
    }

    @Test("A payload has the status, the transaction and the renewal of its instant")
    func payloads() throws {
        var options = SimulatorOptions(seed: 21)
        print("seed \(options.seed)")
        options.customers = 60
        options.traits.seasons = 0.2
        let store = Simulator(options, clock: hand.clock)
        try start(store)
        hand.move(seconds: 150)
        let found = try list(store, "payloads=true")
        var types = Set<String>()
        for made in found {
            let payload = SignedClaims.of(try #require(made.signedPayload))
            types.insert(made.type)
            #expect(payload.text("notificationUUID") == made.notificationUUID && payload.text("version") == "2.0")
            #expect(payload.text("notificationType") == made.type && payload.text("subtype") == made.subtype)
            #expect(payload.number("signedDate") == made.signed)
            let data = try #require(payload["data"] as? [String: Any])
            #expect(data.text("environment") == made.environment.rawValue && data.text("bundleId") == options.bundleID)
            #expect((data["appAppleId"] == nil) == (made.environment == .sandbox))
            let transaction = SignedClaims.of(data.text("signedTransactionInfo") ?? "")
            #expect(transaction.text("transactionId") == made.transactionID)
            #expect(transaction.number("signedDate") == made.signed)
            #expect((transaction["revocationDate"] != nil) || !["REFUND", "REVOKE"].contains(made.type))
            let truth = try #require(store.truth(of: made.customer ?? "", at: made.signed))
            let subscription = truth.subscriptions.first { $0.originalTransactionID == made.originalTransactionID }
            #expect(data["status"] as? Int == subscription?.appleStatus.rawValue)
            let renewal = data.text("signedRenewalInfo").map { SignedClaims.of($0) }
            #expect(renewal?.text("autoRenewProductId") == subscription?.autoRenewProduct)
            #expect((renewal?.number("autoRenewStatus") == 1) == (subscription?.autoRenewStatus ?? false))
        }
        #expect(found.count > 200 && types.count > 10, "\(found.count) \(types)")
        #expect(types.isSuperset(of: ["ONE_TIME_CHARGE", "REFUND", "DID_RENEW", "EXPIRED", "SUBSCRIBED"]))
    }

    @Test("The same seed makes the same notifications, however often they are looked for")
    func deterministic() throws {
        var options = SimulatorOptions(seed: 22)
        print("seed \(options.seed)")
        options.customers = 50
        options.arrivalsPerMonth = 20
        let (often, once) = (Simulator(options, clock: hand.clock), Simulator(options, clock: hand.clock))
        let members = #","share_dropped":0.3,"share_doubled":0.2"#
        try start(often, members)
        try start(once, members)
        for _ in 0..<60 {
            hand.move(seconds: 1.7)
            _ = try list(often)
        }
        let (first, second) = (try list(often), try list(once))
        #expect(first.count > 100)
        #expect(first.map(\.notificationUUID).sorted() == second.map(\.notificationUUID).sorted())
        #expect(Set(first.map(\.notificationUUID)).count == first.count)
        let dropped = [first, second].map { Set($0.filter(\.isDropped).map(\.notificationUUID)) }
        #expect(dropped[0] == dropped[1] && (0.2...0.4).contains(Double(dropped[0].count) / Double(first.count)))
    }

    @Test("A request for a refund, its refusal, a test and extensions are notified")
    func supportCalls() throws {
        let store = hand.emptyStore()
        let client = try ServerClient(store, hand)
        #expect(try client.call("POST", "v1/notifications/test").errorCode == 4_040_007)
        try start(store)
        let shopper = try Shopper("newcomer", in: store)
        _ = try shopper.buy(#""action":"buy""#)
        #expect(try shopper.act(#""action":"decline_refund""#).code == 409)
        #expect(try shopper.act(#""action":"request_refund","request_reason":"LEGAL""#).code == 200)
        #expect(try shopper.act(#""action":"decline_refund""#).code == 200)
        let asked = try list(store, "customer=\(shopper.name)&payloads=true")
        #expect(asked.map(\.type).sorted() == ["CONSUMPTION_REQUEST", "ONE_TIME_CHARGE", "REFUND_DECLINED"])
        let request = try #require(asked.first { $0.type == "CONSUMPTION_REQUEST" }?.signedPayload)
        #expect((SignedClaims.of(request)["data"] as? [String: Any])?.text("consumptionRequestReason") == "LEGAL")

        _ = store.createCustomer(CustomerScript())
        _ = store.createCustomer(ScriptKind.trialConverts.script)
        let body =
            #"{"extendByDays":3,"extendReasonCode":0,"requestIdentifier":"m","productId":"com.example.tracker.monthly"}"#
        #expect(try client.call("POST", "v1/subscriptions/extend/mass", body).code == 200)
        let extensions = try list(store, "payloads=true").filter { $0.type.hasPrefix("RENEWAL_EXT") }
        #expect(extensions.map { $0.subtype ?? "one" }.sorted() == ["FAILURE", "SUMMARY", "one"])
        let summary = try #require(extensions.first { $0.subtype == "SUMMARY" }?.signedPayload)
        let counts = try #require(SignedClaims.of(summary)["summary"] as? [String: Any])
        #expect(counts.number("succeededCount") == 1 && counts.number("failedCount") == 1)

        let token = try #require(try client.call("POST", "v1/notifications/test").json.text("testNotificationToken"))
        let status = try client.call("GET", "v1/notifications/test/\(token)").json
        #expect(SignedClaims.of(status.text("signedPayload") ?? "").text("notificationType") == "TEST")
        #expect(try client.call("GET", "v1/notifications/test/x").errorCode == 4_000_020)
        let unknown = "\(UUID().uuidString.lowercased())_1"
        #expect(try client.call("GET", "v1/notifications/test/\(unknown)").errorCode == 4_040_008)
    }

    @Test("Options that cannot be used are refused")
    func refused() throws {
        let store = hand.emptyStore()
        for body in [
            #"{"url":"https://a"}"#, #"{"url":"nothing"}"#, #"{"url":"http://a","share_dropped":2}"#,
            #"{"url":"http://a","delay_seconds":-1}"#, #"{"url":"http://a","version":"3"}"#, "{}",
        ] {
            #expect(try store.control("POST", "/simulator/notifications", body).code == 400, "\(body)")
        }
        _ = store.createCustomer(CustomerScript())
        #expect(try list(store).isEmpty)
    }
}
