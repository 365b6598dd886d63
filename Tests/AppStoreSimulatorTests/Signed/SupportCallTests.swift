import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("Support calls of the Server API change what the store says") struct SupportCallTests {
    private let hand = ManualClock()
    private let client: ServerClient

    init() throws { client = try ServerClient(hand.emptyStore(), hand) }

    private func extend(_ id: String, days: Int = 15, request: String = "r1") throws -> ServerClient.Answer {
        try client.call(
            "PUT", "v1/subscriptions/extend/\(id)",
            #"{"extendByDays":\#(days),"extendReasonCode":1,"requestIdentifier":"\#(request)"}"#)
    }

    @Test("An extension moves the end by thirtieths of a month, once for each request, twice a year")
    func extensions() throws {
        let customer = client.store.createCustomer(CustomerScript())
        let id = customer.originalTransactionID
        let before = try #require(client.store.truth(of: customer.customer)).subscriptions[0].periods[0]
        let first = try extend(id)
        #expect(first.code == 200 && first.json["success"] as? Bool == true)
        #expect(first.json.text("webOrderLineItemId") == before.webOrderLineItemID)
        #expect(first.json.number("effectiveDate") == before.expires + 30_000)
        #expect(try extend(id).json.number("effectiveDate") == before.expires + 30_000)
        #expect(try extend(id, days: 1, request: "r2").json.number("effectiveDate") == before.expires + 32_000)
        let third = try extend(id, request: "r3")
        #expect(third.code == 403 && third.errorCode == 4_030_005)
        let row = try client.store.ask(customer.receipt).latestRows[0]
        #expect(row.text("expires_date_ms") == String(before.expires + 32_000))
    }

    @Test("Apple refuses extensions of what is over, free, shared or unknown")
    func refusedExtensions() throws {
        func id(_ kind: ScriptKind) -> String { client.store.createCustomer(kind.script).originalTransactionID }
        let lapsed = client.store.createCustomer(CustomerScript())
        _ = try client.store.act(CustomerAction(.refund), on: lapsed.customer)
        #expect(try extend(lapsed.originalTransactionID).errorCode == 4_030_004)
        #expect(try extend(id(.trialConverts)).errorCode == 4_030_004)
        #expect(try extend(id(.familyRevoked)).errorCode == 4_030_007)
        #expect(try extend("1").errorCode == 4_040_005)
        #expect(try extend("x").errorCode == 4_000_008)
        let good = id(.loyal)
        #expect(try extend(good, days: 91).errorCode == 4_000_009)
        #expect(try extend(good, request: "").errorCode == 4_000_011)
        #expect(try client.call("PUT", "v1/subscriptions/extend/\(good)", "{").errorCode == 4_000_000)
    }

    @Test("An extension for all says how many succeeded, and is done once")
    func extensionForAll() throws {
        for _ in 0..<8 { _ = client.store.createCustomer(CustomerScript()) }
        _ = client.store.createCustomer(ScriptKind.trialConverts.script)
        let product = "com.example.tracker.monthly"
        let body = #"{"extendByDays":3,"extendReasonCode":0,"requestIdentifier":"m1","productId":"\#(product)"}"#
        for _ in 0..<2 {
            let answer = try client.call("POST", "v1/subscriptions/extend/mass", body)
            #expect(answer.code == 200 && answer.json.text("requestIdentifier") == "m1")
        }
        let status = try client.call("GET", "v1/subscriptions/extend/mass/\(product)/m1").json
        #expect(status.number("succeededCount") == 8 && status.number("failedCount") == 1)
        #expect(status["complete"] as? Bool == true)
        let unknown = try client.call("GET", "v1/subscriptions/extend/mass/\(product)/m2")
        #expect(unknown.code == 404 && unknown.errorCode == 4_040_009)
        let ends = client.store.truth().compactMap { $0.subscriptions[0].periods.last }
        #expect(ends.count { $0.expires == $0.purchase + 66_000 } == 8)
    }

    @Test("Equal requests at once extend once")
    func equalRequestsAtOnce() async throws {
        let (client, product) = (client, "com.example.tracker.monthly")
        let customers = (0..<300).map { _ in client.store.createCustomer(CustomerScript()) }
        let mass = #"{"extendByDays":3,"extendReasonCode":0,"requestIdentifier":"m1","productId":"\#(product)"}"#
        let single = #"{"extendByDays":15,"extendReasonCode":1,"requestIdentifier":"r1"}"#
        let ids = customers.prefix(50).map(\.originalTransactionID)
        let calls =
            [("POST", "v1/subscriptions/extend/mass", mass)]
            + ids.map { ("PUT", "v1/subscriptions/extend/\($0)", single) }
        for (method, path, body) in calls {
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<8 { group.addTask { try client.call(method, path, body).code } }
                for try await code in group { #expect(code == 200) }
            }
        }
        let periods = client.store.truth().compactMap { $0.subscriptions[0].periods.last }
        #expect(periods.map { $0.expires - $0.purchase } == (0..<300).map { $0 < 50 ? 96_000 : 66_000 })
    }

    @Test("Consumption is taken with the customer's consent alone")
    func consumption() throws {
        let shopper = try Shopper("newcomer", in: client.store)
        let id = try #require(try shopper.buy(#""action":"buy""#).transaction.text("transaction_id"))
        let path = "v2/transactions/consumption/\(id)"
        func said(_ members: String) throws -> ServerClient.Answer {
            try client.call("PUT", path, #"{"sampleContentProvided":false,\#(members)}"#)
        }
        #expect(try said(#""customerConsented":false,"deliveryStatus":"DELIVERED""#).errorCode == 4_000_035)
        #expect(try said(#""customerConsented":true,"deliveryStatus":"GONE""#).errorCode == 4_000_036)
        #expect(try client.call("PUT", path, #"{"customerConsented":true,"deliveryStatus":"DELIVERED"}"#).code == 400)
        let whole = try said(
            #""customerConsented":true,"deliveryStatus":"DELIVERED","consumptionPercentage":50000,"refundPreference":"DECLINE""#
        )
        #expect(whole.code == 202 && whole.body.isEmpty)
        let kept = client.store.respond(to: SimulatorRequest(method: "GET", path: "/simulator/consumption")).body
        #expect(String(decoding: kept, as: UTF8.self).contains(id))
        let subscriber = client.store.createCustomer(CustomerScript()).originalTransactionID
        #expect(
            try client.call(
                "PUT", "v1/transactions/consumption/\(subscriber)", #"{"customerConsented":true}"#
            ).errorCode == 4_000_043)
    }

    @Test("A token that the server sets is in rows and texts from then on, and in the renewals")
    func accountToken() throws {
        let customer = client.store.createCustomer(CustomerScript())
        let id = customer.originalTransactionID
        let token = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
        func set(_ id: String, _ token: String) throws -> ServerClient.Answer {
            try client.call("PUT", "v1/transactions/\(id)/appAccountToken", #"{"appAccountToken":"\#(token)"}"#)
        }
        #expect(try set(id, "x").errorCode == 4_000_183)
        #expect(try set(id, token).code == 200)
        hand.move(seconds: 61)
        let texts = try client.pages("v2/history/\(id)").flatMap(\.transactions)
        #expect(texts.texts("appAccountToken") == [token, token])
        #expect(try client.store.ask(customer.receipt).latestRows.texts("app_account_token") == [token, token])
        #expect(try set(try #require(texts[1].text("transactionId")), token).errorCode == 4_000_187)
        let shared = client.store.createCustomer(ScriptKind.familyRevoked.script).originalTransactionID
        #expect(try set(shared, token).errorCode == 4_000_185)
    }

    @Test("Faults and lags of the Server API leave verifyReceipt alone")
    func troubles() throws {
        let customer = client.store.createCustomer(CustomerScript())
        let path = "v1/transactions/\(customer.originalTransactionID)"
        func fault(_ members: String) throws -> ServerClient.Answer {
            _ = try client.store.control("DELETE", "/simulator/faults")
            let set = try client.store.control(
                "POST", "/simulator/faults", #"{"channel":"server_api",\#(members)}"#)
            #expect(set.code == 200, "\(set.json)")
            return try client.call("GET", path)
        }
        let good = try client.call("GET", path).json.text("signedTransactionInfo")
        let forged = try fault(#""kind":"forged""#).json.text("signedTransactionInfo")
        #expect(good?.split(separator: ".").dropFirst(2) != forged?.split(separator: ".").dropFirst(2))
        let foreign = try fault(#""kind":"foreign""#).json.text("signedTransactionInfo")
        #expect(SignedClaims.of(foreign ?? "").text("bundleId") == "com.example.tracker.other")
        #expect(try fault(#""kind":"status","status":4040002"#).errorCode == 4_040_002)
        let busy = try fault(#""kind":"http","code":429,"seconds":3"#)
        #expect(busy.code == 429 && busy.headers["Retry-After"] == String(ManualClock.start + 3000))
        #expect(try fault(#""kind":"http","code":503"#).code == 503)
        #expect(try client.store.ask(customer.receipt).status == 0)
        _ = try client.store.control("DELETE", "/simulator/faults")
        #expect(try client.store.control("POST", "/simulator/faults", #"{"kind":"forged"}"#).code == 400)

        hand.move(seconds: 30)
        _ = try client.store.control("POST", "/simulator/lag", #"{"channel":"server_api","seconds":5}"#)
        _ = try client.store.act(CustomerAction(.refund), on: customer.customer)
        func isRevoked() throws -> Bool {
            let text = try client.call("GET", path).json.text("signedTransactionInfo")
            return SignedClaims.of(text ?? "")["revocationDate"] != nil
        }
        #expect(try isRevoked() == false)
        #expect(try client.store.ask(customer.receipt).latestRows[0]["cancellation_date"] != nil)
        hand.move(seconds: 5)
        #expect(try isRevoked())
    }
}
