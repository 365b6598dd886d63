import JSON
import Subscriptions
import Testing

@testable import AppStore

@Suite("What is no JSON is no answer, however much it looks like one") struct StrictJSONTests {
    @Test(
        "What is no JSON is no answer",
        arguments: [
            (#"{"status":00}"#, 11), (#"{"status":01}"#, 11), (#"{"status":-}"#, 11), (#"{"status":-01}"#, 12),
            (#"{"status":+0}"#, 10), (#"{"status":0.}"#, 12), (#"{"status":.0}"#, 10), (#"{"status":0e}"#, 12),
            (#"{"status":0e+}"#, 13), (#"{"status":0.e1}"#, 12), (#"{"status":0-0}"#, 11), (#"{"status":0x0}"#, 11),
            (#"{"status":1e5.0}"#, 13), ("{\u{B}\"status\":0}", 1), ("{\"status\":0\u{C}}", 11),
            (#"{"a":"\q","status":0}"#, 7), (#"{"a":"\'","status":0}"#, 7),
            (#"{"a":"\u12g4","status":0}"#, 10), (#"{"a":"\u 123","status":0}"#, 8), (#"{"a":"\U0041","status":0}"#, 7),
            (#"{"\q":0,"status":0}"#, 3), (#"{"a":[1,],"status":0}"#, 8), ("{\"status\":0,\n}", 13),
            (#"{"a":["\x41"],"status":0}"#, 8), ("{\"a\":\"\\\n\",\"status\":0}", 7),
        ])
    func whatIsNoJSONIsNoAnswer(_ body: String, _ place: Int) {
        #expect(throws: NotJSON("text that is not JSON at byte \(place)")) { try parse(body) }
    }

    @Test(
        "Every number of JSON is read",
        arguments: [
            ("0", 0), ("-0", 0), ("0.0", 0), ("0e0", 0), ("0E+5", 0), ("21e3", 21000), ("210020e-1", 21002),
            ("21002.000", 21002), ("-5", -5),
        ] as [(String, Int)])
    func everyNumberOfJSONIsRead(_ number: String, _ expected: Int) throws {
        #expect(try parse(#"{"status":\#(number)}"#).status == expected)
    }

    @Test("Every escape of JSON is read")
    func everyEscapeOfJSONIsRead() throws {
        let exception = #"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00x"#
        let response = try parse(#"{"status":0,"exception":"\#(exception)"}"#)
        #expect(response.exception == "\"\\/\u{8}\u{C}\n\r\té😀x")
    }

    @Test(
        "A torn token is a torn body",
        arguments: [
            #"{"a":"\"#, #"{"a":"\u"#, #"{"a":"\u00e"#, #"{"a":-"#, #"{"a":1."#, #"{"a":1e"#, #"{"a":1e-"#,
            "{\"a\":\"\\\"",
        ])
    func aTornTokenIsATornBody(_ body: String) {
        #expect(throws: NotJSON("JSON that ends in the middle, after \(body.utf8.count) bytes")) {
            try parse(body)
        }
    }

    @Test("Quotes are found at every place")
    func quotesAreFoundAtEveryPlace() throws {
        // Strings are looked through eight bytes at a time: every length, and every neighbour a mark could be mistaken
        // for.
        for neighbour in ["!", "#", "[", "]", "\u{A2}", "\u{DC}", "\u{1}"] {
            for length in 0...40 {
                let text = String(repeating: neighbour, count: length) + "x"
                for escaped in ["", #"\""#, #"\\"#] {
                    let response = try parse(#"{"exception":"\#(text)\#(escaped)","status":0}"#)
                    #expect(response.exception == text + escaped.dropFirst() && response.status == 0)
                }
            }
        }
    }

    @Test("Rows beyond the limit are no answer")
    func rowsBeyondTheLimitAreNoAnswer() throws {
        let most = Array(repeating: "1", count: RowReader.rowsMax).joined(separator: ",")
        #expect(try parse(#"{"status":0,"latest_receipt_info":[\#(most)]}"#).status == 0)
        #expect(throws: NotJSON("an answer of more than 100000 rows in latest_receipt_info")) {
            try parse(#"{"status":0,"latest_receipt_info":[\#(most),1]}"#)
        }
    }

    @Test("A body beyond the limit is no answer")
    func aBodyBeyondTheLimitIsNoAnswer() {
        let body = Array(#"{"status":0}"#.utf8) + [UInt8](repeating: 0x20, count: JSONDocument.bytesMax - 12)
        #expect(throws: Never.self) { try VerifyReceiptResponse(parsing: body) }
        #expect(throws: NotJSON("a body of 67108865 bytes, more than 67108864")) {
            try VerifyReceiptResponse(parsing: body + [0x20])
        }
    }

    @Test("Every known key has its own slot")
    func everyKnownKeyHasItsOwnSlot() {
        var slots: Set<Int> = []
        func look(_ name: String, _ slot: Int) {
            #expect(Array(name.utf8).withUnsafeBytes { FieldNames.known.slot(of: $0) } == slot, "\(name)")
            slots.insert(slot)
            // One letter changed anywhere makes it a stranger.
            for place in 0..<name.utf8.count {
                var other = Array(name.utf8)
                other[place] ^= 0x20
                #expect(other.withUnsafeBytes { FieldNames.known.slot(of: $0) } == nil, "\(name)")
            }
        }
        for field in AnswerField.allCases { look(field.name, field.slot) }
        for date in AnswerDate.allCases {
            for form in AnswerDate.Form.allCases { look(date.name + form.suffix, date.slot(form)) }
        }
        #expect(slots == Set(0..<FieldNames.known.count))
        #expect(KeyWords.bytesMax >= AnswerField.allCases.map(\.name.utf8.count).max() ?? 0)
    }

    @Test("Many unnamed renewals among many rows are read")
    func manyUnnamedRenewalsAmongManyRowsAreRead() throws {
        let rows = (0..<2000).map {
            #"{"product_id":"p\#($0)","transaction_id":"\#($0)","purchase_date_ms":"\#($0 + 1)"}"#
        }
        .joined(separator: ",")
        let renewals = (0..<2000).map { #"{"product_id":"p\#($0)","auto_renew_status":"1"}"# }.joined(separator: ",")
        let response = try parse(#"{"latest_receipt_info":[\#(rows)],"pending_renewal_info":[\#(renewals)]}"#)
        #expect(response.renewals.map(\.originalTransactionID.text) == (0..<2000).map(String.init))
    }
}
