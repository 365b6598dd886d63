import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("A history has pages, filters and revisions") struct HistoryTests {
    private let hand = ManualClock()
    private let client: ServerClient
    private let shopper: Shopper
    private let id: String

    init() throws {
        let store = hand.emptyStore()
        client = try ServerClient(store, hand)
        var script = CustomerScript()
        script.pastPeriods = 44
        let customer = store.createCustomer(script)
        shopper = Shopper(of: customer.customer, in: store)
        id = customer.originalTransactionID
    }

    private func ids(_ pages: [ServerClient.Answer]) -> [String?] {
        pages.flatMap(\.transactions).texts("transactionId")
    }

    @Test("Twenty transactions are a page, in the order of their changes")
    func pages() throws {
        let pages = try client.pages("v2/history/\(id)?sort=ASCENDING")
        #expect(pages.map { $0.transactions.count } == [20, 20, 5])
        let truth = try #require(client.store.truth(of: shopper.name)).subscriptions[0].periods
        #expect(ids(pages) == truth.map(\.transactionID))
        #expect(ids(try client.pages("v2/history/\(id)?sort=DESCENDING")) == truth.map(\.transactionID).reversed())
        #expect(pages.last?.json["bundleId"] as? String == "com.example.tracker")
        #expect(pages.last?.json.number("appAppleId") == AnswerBody.appID)
    }

    @Test("From a stored revision on there is only what changed: a refunded, an upgraded and a new transaction")
    func resumed() throws {
        let last = try #require(try client.pages("v2/history/\(id)").last?.json.text("revision"))
        let unchanged = try client.call("GET", "v2/history/\(id)?revision=\(last.escaped)")
        #expect(unchanged.transactions.isEmpty && unchanged.json.text("revision") == last)
        #expect(unchanged.json["hasMore"] as? Bool == false)
        let periods = try #require(client.store.truth(of: shopper.name)).subscriptions[0].periods
        hand.move(seconds: 1)
        _ = try shopper.act(#""action":"refund","transaction_id":"\#(periods[3].transactionID)","reason":1"#)
        hand.move(seconds: 1)
        _ = try shopper.act(#""action":"upgrade""#)
        let changed = try client.call("GET", "v2/history/\(id)?revision=\(last.escaped)").transactions
        let newest = try #require(client.store.truth(of: shopper.name)).subscriptions[0].periods.last
        #expect(
            changed.texts("transactionId")
                == [periods[3].transactionID, periods[44].transactionID, newest?.transactionID].sorted {
                    ($0 == periods[3].transactionID ? 0 : 1, $0 ?? "") < (
                        $1 == periods[3].transactionID ? 0 : 1, $1 ?? ""
                    )
                })
        let refunded = changed[0]
        #expect(refunded.number("revocationDate") == ManualClock.start + 1000)
        #expect(refunded.number("revocationReason") == 1 && refunded.text("revocationType") == "REFUND_FULL")
        let upgraded = try #require(changed.first { $0["isUpgraded"] as? Bool == true })
        #expect(upgraded.text("revocationType") == "REFUND_PRORATED")
        #expect(upgraded.number("revocationPercentage") == 96_666)
    }

    @Test("Filters leave out what was not asked for")
    func filters() throws {
        let coins = try shopper.buy(#""action":"buy","item":"coins""#).transaction.text("transaction_id")
        _ = try shopper.act(#""action":"finish","transaction_id":"\#(coins ?? "")""#)
        let refunded = try #require(client.store.truth(of: shopper.name)).subscriptions[0].periods[2]
        _ = try shopper.act(#""action":"refund","transaction_id":"\#(refunded.transactionID)""#)
        func count(_ query: String, version: Int = 2) throws -> Int {
            try client.pages("v\(version)/history/\(id)?\(query)").flatMap(\.transactions).count
        }
        #expect(try count("") == 46 && count("", version: 1) == 45)
        #expect(try count("productType=CONSUMABLE") == 1 && count("productType=AUTO_RENEWABLE") == 45)
        #expect(try count("productId=com.example.tracker.coins&productId=other") == 1)
        #expect(try count("subscriptionGroupIdentifier=20000001") == 45)
        #expect(try count("inAppOwnershipType=FAMILY_SHARED") == 0)
        #expect(try count("revoked=true") == 1 && count("revoked=false") == 45)
        #expect(try count("startDate=\(refunded.purchase)&endDate=\(refunded.purchase + 1)") == 1)
    }

    @Test(
        "A parameter of another form is refused with Apple's code",
        arguments: [
            ("revision=x", 4_000_005), ("revision=MSAwIA==", 4_000_005), ("startDate=x", 4_000_015),
            ("endDate=x", 4_000_016), ("startDate=2&endDate=1", 4_000_013), ("sort=UP", 4_000_021),
            ("productType=X", 4_000_022), ("productId=", 4_000_023), ("subscriptionGroupIdentifier=", 4_000_024),
            ("inAppOwnershipType=X", 4_000_026), ("revoked=yes", 4_000_030),
        ])
    func refused(query: String, code: Int) throws {
        let answer = try client.call("GET", "v2/history/\(id)?\(query)")
        #expect(answer.code == 400 && answer.errorCode == code)
    }

    @Test("Any transaction of the customer names him, also one of a restore or of the app")
    func anyID() throws {
        let truth = try #require(client.store.truth(of: shopper.name)).subscriptions[0].periods
        let claims = try client.pages("v2/history/\(id)")[0].transactions[0]
        let restored = client.store.world.account(0, at: client.store.now)?.lives[0].ids
            .transactionID(of: 7, restore: 2)
        for id in [truth[9].transactionID, claims.text("appTransactionId"), restored] {
            #expect(try ids(client.pages("v2/history/\(try #require(id))")).count == 45)
        }
    }

    @Test("What is not there is not found, and what is no id is refused")
    func notFound() throws {
        let tester = client.store.createCustomer(CustomerScript(), environment: .sandbox)
        for path in ["v1/subscriptions", "v2/history", "v1/transactions", "v2/refund/lookup"] {
            for id in ["1", "570000999999000", tester.originalTransactionID] {
                let answer = try client.call("GET", "\(path)/\(id)")
                #expect(answer.code == 404 && answer.errorCode == 4_040_010, "\(path) \(id)")
            }
            #expect(try client.call("GET", "\(path)/\(tester.originalTransactionID)", at: .sandbox).code == 200)
            #expect(try client.call("GET", "\(path)/eyJ").errorCode == 4_000_006)
        }
        let app = try #require(
            try client.pages("v2/history/\(id)")[0].transactions[0].text("appTransactionId"))
        #expect(try client.call("GET", "v1/transactions/\(app)").errorCode == 4_000_048)
        let one = try client.call("GET", "v1/transactions/\(id)").json.text("signedTransactionInfo")
        #expect(SignedClaims.of(one ?? "").text("transactionId") == id)
        _ = try shopper.act(#""action":"delete_account""#)
        #expect(try client.call("GET", "v1/subscriptions/\(id)").errorCode == 4_040_001)
    }

    @Test("Refunds are found by any transaction, in the order of their dates")
    func refunds() throws {
        let periods = try #require(client.store.truth(of: shopper.name)).subscriptions[0].periods
        for period in periods.dropLast().reversed().prefix(23) {
            hand.move(seconds: 0.1)
            _ = try shopper.act(#""action":"refund","transaction_id":"\#(period.transactionID)""#)
        }
        _ = try shopper.act(#""action":"upgrade""#)
        let pages = try client.pages("v2/refund/lookup/\(id)")
        #expect(pages.map { $0.transactions.count } == [20, 3])
        #expect(ids(pages) == periods.dropLast().reversed().prefix(23).map(\.transactionID))
        #expect(pages[0].json["environment"] == nil)
    }
}
