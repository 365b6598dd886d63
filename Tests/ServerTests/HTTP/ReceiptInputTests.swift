import Foundation
import Hummingbird
import HummingbirdTesting
import Subscriptions
import Testing
import Tracking

@testable import Server

@Suite("An upload is read from JSON, or refused with a reason") struct ReceiptInputTests {
    /// Each is refused before the database is asked, and no value of the body is repeated.
    @Test(
        "Bad input is refused with a reason",
        arguments: [
            ("", "The body is not JSON."), ("{", "The body is not JSON."), ("nonsense", "The body is not JSON."),
            ("[]", "The body's outermost value has the wrong type."), ("null", "The body's outermost value"),
            (#"{"receipt":"hidden"}"#, "The body's customer is missing."),
            (#"{"customer":"hidden"}"#, "The body has exactly one of receipt, signed_transaction and transaction_id."),
            (
                #"{"customer":"kim","receipt":"hidden","transaction_id":"hidden"}"#,
                "The body has exactly one of receipt, signed_transaction and transaction_id."
            ),
            (#"{"customer":7,"receipt":"hidden"}"#, "The body's customer has the wrong type."),
            (#"{"customer":"kim","receipt":{"hidden":1}}"#, "The body's receipt has the wrong type."),
            (#"{"customer":null,"receipt":"hidden"}"#, "The body's customer must not be null."),
            (#"{"customer":"","receipt":"hidden"}"#, "A customer id has 1 to 255 characters"),
            (#"{"customer":"a\u0000b","receipt":"hidden"}"#, "A customer id cannot hold a NUL."),
            (
                #"{"customer":"kim","receipt":"hidden","price":"4,99"}"#,
                "The body's price is a price like 4.99, from 0 to"
            ),
            (#"{"customer":"kim","receipt":"hidden","price":-1}"#, "The body's price is a price like 4.99, from 0 to"),
            (#"{"customer":"kim","receipt":"hidden","price":[]}"#, "The body's price"),
            (
                #"{"customer":"kim","receipt":"hidden","currency":"EURO"}"#,
                "The body's currency is not an ISO 4217 code"
            ),
            (#"{"customer":"kim","receipt":"hidden","currency":"€€€"}"#, "The body's currency is not an ISO 4217 code"),
            (#"{"customer":"kim","receipt":"hidden","storefront":""}"#, "The body's storefront is not a storefront"),
            (
                #"{"customer":"kim","receipt":"hidden","storefront":"a\u0000"}"#,
                "The body's storefront is not a storefront"
            ),
        ])
    func whatIsRefused(_ body: String, _ detail: String) async throws {
        let response = try await Serving.withoutDatabase { client in
            try await client.send(.post, Serving.receipts, secret: TestKey.write.secret, body: body)
        }
        try expectProblem(response, "invalid", status: 400)
        let reported = try #require(AnswerBody(response).text("detail"))
        #expect(reported.hasPrefix(detail) && !reported.contains("hidden"))
    }

    /// 4.35 and 1.005 are what binary fractions get wrong.
    @Test(
        "A price in JSON is exact",
        arguments: [
            ("4.35", 4350), ("\"4.35\"", 4350), ("1.005", 1005), ("4.9900", 4990), ("12", 12000), ("1e2", 100_000),
            ("8999999999.999", 8_999_999_999_999), ("1e400", nil), ("1e30", nil), ("-0.01", nil), ("0.0001", nil),
            ("true", nil),
        ] as [(String, Int64?)])
    func aPriceInJSON(_ json: String, _ milliunits: Int64?) throws {
        let body = Data(#"{"customer":"kim","receipt":"r","price":\#(json)}"#.utf8)
        guard let milliunits else {
            #expect(throws: DecodingError.self) { try JSONDecoder().decode(PostReceipt.Body.self, from: body) }
            return
        }
        let read = try JSONDecoder().decode(PostReceipt.Body.self, from: body)
        #expect(try read.submission(for: "com.example.app").priceMilliunits == milliunits)
    }

    @Test("All fields arrive")
    func allFieldsArrive() throws {
        let body =
            #"{"customer":"kim","receipt":"r","storefront":"143441-1,29","price":4.99,"currency":"usd"}"#
        let submission = try JSONDecoder().decode(PostReceipt.Body.self, from: Data(body.utf8)).submission(for: "a.b")
        #expect(submission.bundleID == "a.b" && submission.customer == "kim" && submission.subject == .receipt("r"))
        #expect(submission.storefront == "143441-1,29" && submission.currency == "USD" && !submission.imported)
    }

    @Test(
        "Customers in paths are decoded or refused",
        arguments: [
            ("%FF", 400), ("a%00b", 400), (String(repeating: "a", count: 256), 400), ("kim%20%2F%C3%A9", 503),
        ])
    func customersInPaths(_ customer: String, _ status: Int) async throws {
        let response = try await Serving.withoutDatabase { client in
            try await client.send(
                .get, "/v1/apps/com.example.app/customers/\(customer)/entitlements", secret: TestKey.read.secret)
        }
        #expect(response.status.code == status)
    }

    @Test(
        "Instants that are none are refused",
        arguments: ["at=", "at=yesterday", "known_at=2026", "at=1969-12-31T23:59:59Z", "at=20260101"])
    func instantsThatAreNone(_ query: String) async throws {
        let response = try await Serving.withoutDatabase { client in
            try await client.send(.get, Serving.entitlements + "?" + query, secret: TestKey.read.secret)
        }
        try expectProblem(response, "invalid", status: 400)
    }
}
