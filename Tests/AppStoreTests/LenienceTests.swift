import JSON
import Subscriptions
import Testing

@testable import AppStore

@Suite("Values are read in every form") struct LenienceTests {
    @Test(
        "A status is read in every form",
        arguments: [
            ("0", 0), (#""21002""#, 21002), ("21002.0", 21002), (#"" 21007 ""#, 21007), ("2.1007e4", 21007),
            (#""OK""#, nil), ("null", nil), (#""""#, nil), ("0.5", nil), ("true", nil), ("{}", nil),
            ("99999999999999999999999", nil),
        ] as [(String, Int?)])
    func status(_ json: String, _ expected: Int?) throws {
        #expect(try parse(#"{"status":\#(json)}"#).status == expected)
    }

    @Test(
        "The hint to try again is read in every form",
        arguments: [
            (#""is-retryable":true"#, true), (#""is_retryable":"true""#, true), (#""is-retryable":1"#, true),
            (#""is_retryable":"1""#, true), (#""is-retryable":false"#, false), (#""is_retryable":"FALSE""#, false),
            (#""is-retryable":0"#, false), (#""is-retryable":"0""#, false), (#""is-retryable":null"#, nil),
            (#""is-retryable":"maybe""#, nil), (#""exception":"x""#, nil),
        ] as [(String, Bool?)])
    func retryable(_ json: String, _ expected: Bool?) throws {
        #expect(try parse("{\(json)}").isRetryable == expected)
    }

    @Test(
        "Instants are read in every form",
        arguments: [
            (#""expires_date_ms":"1646945826586""#, 1_646_945_826_586),
            (#""expires_date_ms":1646945826586"#, 1_646_945_826_586),
            (#""expires_date_ms":1.646945826586E12"#, 1_646_945_826_586),
            (#""expires_date":"2014-11-12 15:10:33 Etc/GMT""#, 1_415_805_033_000),
            (#""expires_date":"2000-02-29T00:00:00Z""#, 951_782_400_000),
            (#""expires_date":"1970-01-01 00:00:00 Etc/GMT""#, 0),
            (#""expires_date":"9999-12-31 23:59:59 Etc/GMT""#, 253_402_300_799_000),
            (#""expires_date":"1423558800000""#, 1_423_558_800_000),
            (#""expires_date_formatted":"2015-02-10 09:00:00 Etc/GMT""#, 1_423_558_800_000),
            (#""expires_date_ms":"","expires_date":"2014-11-12 15:10:33 Etc/GMT""#, 1_415_805_033_000),
            (#""expires_date_ms":"5","expires_date":"2014-11-12 15:10:33 Etc/GMT""#, 5),
            // Zero is nothing: the text beside it counts.
            (#""expires_date_ms":"0000","expires_date":"2014-11-12 15:10:33 Etc/GMT""#, 1_415_805_033_000),
            (#""expires_date_ms":0,"expires_date":"0""#, 0),
            // RFC 3339 with an offset, and RFC 822.
            (#""expires_date":"2014-11-12T16:10:33+01:00""#, 1_415_805_033_000),
            (#""expires_date":"Wed, 12 Nov 2014 15:10:33 GMT""#, 1_415_805_033_000),
            (#""expires_date":"12 nov 2014 15:10:33 UT""#, 1_415_805_033_000),
            (#""expires_date":"Wed,  12 Nov 14 07:10:33 -0800 (PST)""#, 1_415_805_033_000),
            (#""expires_date":"Wed, 12 Nov 2014 07:10:33 PST""#, 1_415_805_033_000),
            (#""expires_date":"Sat, 1 Jan 00 00:00 Z""#, 946_684_800_000),
            (#""expires_date":"Thu, 31 Dec 98 23:59:59 +0000""#, 915_148_799_000),
            (#""expires_date":"?","expires_date_formatted":"Wed, 12 Nov 2014 15:10:33 GMT""#, 1_415_805_033_000),
            (#""expires_date":"Wed, 12 Nov 2014 15:10:33""#, nil),
            (#""expires_date":"Wed, 12 Nov 2014 15:10:33 MESZ""#, nil),
            (#""expires_date":"Wed, 12 Nov 214 15:10:33 GMT""#, nil),
            (#""expires_date":"Tod, 12 Nov 2014 15:10:33 GMT""#, nil),
            (#""expires_date":"Wed, 31 Nov 2014 15:10:33 GMT""#, nil),
            (#""expires_date":"Wed, 12 Nov 2014 25:10:33 GMT""#, nil),
            (#""expires_date":"Wed, 12 Nov 2014 15::33 GMT""#, nil),
            // Absurd instants are absent, and the text beside them is not believed either.
            (#""expires_date_ms":"-1","expires_date":"2014-11-12 15:10:33 Etc/GMT""#, nil),
            (#""expires_date_ms":"253402300800000""#, nil), (#""expires_date_ms":9223372036854775807"#, nil),
            (#""expires_date_ms":1e300"#, nil), (#""expires_date_ms":"1415805033000.5""#, nil),
            (#""expires_date":"2014-11-12 07:10:33 America/Los_Angeles""#, nil),
            (#""expires_date":"2014-02-30 07:10:33 Etc/GMT""#, nil),
            (#""expires_date":"2014-11-12 3:10:33 PM Etc/GMT""#, nil),
            (#""expires_date":"2014-11-12 24:10:33 Etc/GMT""#, nil), (#""expires_date":"soon""#, nil),
            (#""expires_date":[]"#, nil),
        ] as [(String, Int64?)])
    func instants(_ json: String, _ expected: Int64?) throws {
        let response = try parse("{\"latest_receipt_info\":[{\(ResponseTests.row),\(json)}]}")
        #expect(response.latestReceiptInfo.first?.expiresAt?.milliseconds == expected)
    }

    @Test("Zero milliseconds take nothing back")
    func zeroMillisecondsTakeNothingBack() throws {
        for zero in [#""0""#, "0", #""0000000000000""#] {
            let body = "{\"latest_receipt_info\":[{\(ResponseTests.row),\"cancellation_date_ms\":\(zero)}]}"
            let row = try #require(try parse(body).latestReceiptInfo.first)
            #expect(row.cancelledAt == nil && row.cancellationForm == nil)
        }
    }

    @Test(
        "An expiry remembers the form in which it was given",
        arguments: [
            (#""expires_date_ms":"5","expires_date":"5""#, .milliseconds), (#""expires_date":"5""#, .plain),
            (#""expires_date":"2014-11-12 15:10:33 Etc/GMT""#, .text),
            (#""expires_date":"?","expires_date_formatted":"2014-11-12 15:10:33 Etc/GMT""#, .formatted),
            (#""expires_date_ms":"0","expires_date":"2014-11-12 15:10:33 Etc/GMT""#, .text),
            (#""expires_date_ms":"0""#, .milliseconds),
        ] as [(String, InstantForm)])
    func formsOfInstants(_ json: String, _ expected: InstantForm) throws {
        let response = try parse("{\"latest_receipt_info\":[{\(ResponseTests.row),\(json)}]}")
        #expect(response.latestReceiptInfo.first?.expiryForm == expected)
    }

    @Test(
        "Identifiers are read in every form",
        arguments: [
            (#""503000000000000123""#, "503000000000000123"), ("503000000000000123", "503000000000000123"),
            ("99999999999999999999999999", "99999999999999999999999999"), (#""000123""#, "000123"),
            ("1000000131413546.0", "1000000131413546"), ("1.000000131413546E15", "1000000131413546"),
            (#""a\u0041\/\ud83d\ude00""#, "aA/😀"), (#""\ud83d""#, "\u{FFFD}"), ("true", "true"),
            (#""""#, "11"), ("null", "11"), ("{}", "11"),
        ])
    func identifiers(_ json: String, _ expected: String) throws {
        let row = #""product_id":"m","transaction_id":"11","purchase_date_ms":"1","original_transaction_id":\#(json)"#
        let response = try parse("{\"latest_receipt_info\":[{\(row)}]}")
        #expect(response.latestReceiptInfo.first?.originalTransactionID.text == expected)
    }

    @Test(
        "Quantities are read in every form",
        arguments: [
            (#""quantity":"3""#, 3), (#""quantity":3"#, 3), (#""quantity":"0""#, 1), (#""quantity":-4"#, 1),
            (#""quantity":"many""#, 1), (#""quantity":99999999999"#, 1), (#""x":0"#, 1),
        ])
    func quantities(_ json: String, _ expected: Int) throws {
        let response = try parse("{\"latest_receipt_info\":[{\(ResponseTests.row),\(json)}]}")
        #expect(response.latestReceiptInfo.first?.quantity == expected)
    }

    @Test("A duplicate key is no error")
    func aDuplicateKeyIsNoError() throws {
        #expect(try parse(#"{"status":21002,"status":0}"#).status == 0)
        #expect(try parse(#"{"st\u0061tus":5}"#).status == 5)
    }

    @Test("A receipt in an array is a row")
    func aReceiptInAnArrayIsARow() throws {
        let response = try parse("{\"receipt\":[{\"bundle_id\":\"b\",\"in_app\":[{\(ResponseTests.row)}]}]}")
        #expect(response.bundleID == "b" && response.inApp.map(\.path) == ["receipt[0].in_app[0]"])
    }

    @Test(
        "What is no answer is unreadable, with its reason",
        arguments: [
            ("", "an empty body"), (" \n", "an empty body"), ("<html>", "a web page instead of JSON"),
            (#"{"status":0"#, "JSON that ends in the middle, after 11 bytes"),
            (#"{"status":0}{"#, "JSON followed by something else at byte 12"),
            ("An Internal Server Error", "text that is not JSON at byte 0"), ("[]", "JSON that is not an object"),
            ("5", "JSON that is not an object"), ("null", "JSON that is not an object"),
            (#"{"status":0,}"#, "text that is not JSON at byte 12"), ("{1:2}", "text that is not JSON at byte 1"),
            (#"{"a":tru}"#, "text that is not JSON at byte 5"), (#"{"a":-}"#, "text that is not JSON at byte 6"),
            (String(repeating: "[", count: 100_000), "JSON nested deeper than 64"),
        ])
    func unreadable(_ body: String, _ reason: String) {
        #expect(throws: NotJSON(reason)) { try parse(body) }
    }
}
