import Subscriptions
import Testing

@testable import AppStore

@Suite("The outline of an answer says what its decoding says") struct AnswerOutlineTests {
    @Test("Captured and synthetic answers: status, clock and newest receipt")
    func fixtures() throws {
        var genuine = 0
        for file in Fixtures.files(ending: [".json", "verifyReceiptSample1.txt"]) {
            guard let response = try? VerifyReceiptResponse(parsing: file.body) else { continue }
            let outline = AnswerOutline(of: file.body)
            if let requestedAt = outline.requestedAt { #expect(requestedAt == response.requestedAt, "\(file.name)") }
            // A capture may wrap an answer into something else, which then has no status of its own.
            guard outline.saysGenuine, let status = response.status else { continue }
            genuine += 1
            #expect(status == 0, "\(file.name)")
            #expect(outline.holdsLatestReceipt == (response.latestReceipt != nil), "\(file.name)")
        }
        print("genuine answers outlined: \(genuine)")
        #expect(Fixtures.folder == nil || genuine > 40)
    }

    @Test(
        "A body that does not plainly say 0 once is left to the decoder",
        arguments: [
            "", "{}", #"{"status":0"#, #"{"status":21007}"#, #"{"status":0.5}"#, #"{"status":"0"}"#, #"{"status":00}"#,
            #"{"status":0,"receipt":{"status":21003}}"#, #"{"note":"\"status\":0"}"#, #"{"status":0,"status":21003}"#,
        ])
    func plainlyGenuine(_ body: String) {
        #expect(!AnswerOutline(of: Array(body.utf8)).saysGenuine)
    }

    @Test("An answer without exactly one clock has none")
    func clock() {
        func requestedAt(_ body: String) -> Int64? {
            AnswerOutline(of: Array(body.utf8)).requestedAt?.milliseconds
        }
        #expect(requestedAt(#"{"status": 0, "receipt": {"request_date_ms": "1700000000000"}}"#) == 1_700_000_000_000)
        #expect(requestedAt(#"{"status":0,"receipt":{"request_date_ms":1700000000000}}"#) == nil)
        #expect(requestedAt(#"{"a":{"request_date_ms":"1"},"b":{"request_date_ms":"2"}}"#) == nil)
        #expect(requestedAt(#"{"receipt":{"request_date":"2023-11-14 22:13:20 Etc/GMT"}}"#) == nil)
    }

    @Test("Clocks and the newest receipt pass, everything else lasts")
    func lasting() {
        func lasting(_ body: String) -> String {
            let bytes = Array(body.utf8)
            return AnswerOutline(of: bytes).lastingParts.map { String(decoding: bytes[$0], as: UTF8.self) }.joined()
        }
        func answer(newest: String, milliseconds: Int, at date: String) -> String {
            #"{"status":0,"latest_receipt":"\#(newest)","receipt":"#
                + #"{"request_date_ms":"\#(milliseconds)","request_date":"\#(date)","product_id":"monthly"}}"#
        }
        let first = answer(newest: "AAA=", milliseconds: 1, at: "then")
        let later = answer(newest: "BBBBBBBB", milliseconds: 22, at: "now")
        #expect(lasting(first) == lasting(later))
        #expect(lasting(first) != lasting(later.replacing("monthly", with: "yearly")))
        #expect(lasting(first) != lasting(first.replacing(#""status":0"#, with: #""status":21006"#)))
    }
}
