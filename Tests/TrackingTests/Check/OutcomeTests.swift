import AppStore
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

@Suite("Each of Apple's answers has its outcome") struct OutcomeTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let body: String
        let outcome: String
        let retryable: Bool
        var http: Int? = 200
        var testDescription: String { "\(http.map(String.init) ?? "no HTTP") \(body.prefix(60))" }
    }

    static let row = """
        {"quantity":"1","product_id":"p","transaction_id":"1","original_transaction_id":"1",\
        "purchase_date_ms":"1700000000000","expires_date_ms":"1702592000000"}
        """
    static let answers: [Case] = [
        Case(
            body: #"{"status":0,"receipt":{"bundle_id":"com.example.app","in_app":[]}}"#, outcome: "verified",
            retryable: false),
        Case(
            body: #"{"status":0,"receipt":{"bundle_id":"com.example.other","in_app":[]}}"#, outcome: "rejected",
            retryable: false),
        Case(body: #"{"status":0,"receipt":{"in_app":[]}}"#, outcome: "rejected", retryable: false),
        Case(
            body: #"{"status":21006,"receipt":{"bundle_id":"com.example.app","in_app":[\#(row)]}}"#,
            outcome: "verified",
            retryable: false),
        Case(body: #"{"status":21006}"#, outcome: "indeterminate", retryable: true),
        Case(body: #"{"status":21003}"#, outcome: "rejected", retryable: true),
        Case(body: #"{"status":21010}"#, outcome: "rejected", retryable: true),
        Case(body: #"{"status":21010,"is-retryable":false}"#, outcome: "rejected", retryable: false),
        Case(body: #"{"status":21000}"#, outcome: "rejected", retryable: false),
        Case(body: #"{"status":21004}"#, outcome: "rejected", retryable: false),
        Case(body: #"{"status":21007}"#, outcome: "rejected", retryable: false),
        Case(body: #"{"status":21008}"#, outcome: "rejected", retryable: false),
        Case(body: #"{"status":21001}"#, outcome: "indeterminate", retryable: true),
        Case(body: #"{"status":21002}"#, outcome: "indeterminate", retryable: true),
        Case(body: #"{"status":21002,"is-retryable":false}"#, outcome: "indeterminate", retryable: true),
        Case(body: #"{"status":21005}"#, outcome: "indeterminate", retryable: true),
        Case(body: #"{"status":21009}"#, outcome: "indeterminate", retryable: true),
        Case(body: #"{"status":21100}"#, outcome: "indeterminate", retryable: true),
        Case(body: #"{"status":21199,"is-retryable":false}"#, outcome: "indeterminate", retryable: false),
        Case(body: #"{"status":21199,"is_retryable":"1"}"#, outcome: "indeterminate", retryable: true),
        Case(body: #"{"status":99999}"#, outcome: "indeterminate", retryable: true),
        Case(body: #"{"status":"21003"}"#, outcome: "rejected", retryable: true),
        Case(body: #"{}"#, outcome: "indeterminate", retryable: true),
        Case(body: "<html>", outcome: "indeterminate", retryable: true),
        Case(body: "", outcome: "indeterminate", retryable: true, http: nil),
    ]

    @Test("Each answer has its worth", arguments: answers)
    func anAnswerIsWorth(_ answer: Case) {
        let finding = Finding(in: read(answer), for: "com.example.app", clock: Instant(milliseconds: 0))
        #expect(finding.outcomeWord == answer.outcome)
        #expect(finding.isRetryable == answer.retryable)
    }

    @Test("A failure of HTTP beats any body")
    func httpTroubleBeatsAnyBody() {
        let unavailable = AppStoreAnswer(
            environment: .production, httpStatus: 503, body: Array(#"{"status":0}"#.utf8), failure: nil, calls: 1,
            usedPreviousSecret: false, elapsedMilliseconds: 1)
        let finding = Finding(in: unavailable, for: nil, clock: Instant(milliseconds: 0))
        #expect(finding.outcomeWord == "indeterminate")
    }

    private func read(_ answer: Case) -> AppStoreAnswer {
        AppStoreAnswer(
            environment: .production, httpStatus: answer.http, body: Array(answer.body.utf8), failure: nil, calls: 1,
            usedPreviousSecret: false, elapsedMilliseconds: 1)
    }
}

/// Rows of Apple's answers that cannot be read are named, wherever they stand.
@Suite("A row that cannot be read is named") struct UnreadableRowTests {
    /// One purchase on the device, made at a date of this form.
    private static func answer(_ date: String) -> String {
        """
        {"status":0,"environment":"Production","receipt":{"bundle_id":"com.example.app",
         "request_date_ms":"1700000000000","receipt_creation_date_ms":"1690000000000","in_app":[
          {"product_id":"lamp","quantity":"1","transaction_id":"7","original_transaction_id":"7",
           "purchase_date":"\(date)"}]}}
        """
    }

    @Test(
        "A worker warns of a purchase that cannot be read",
        arguments: [("soon", true), ("Tue, 04 Jul 2023 12:00:00 +0000", false)])
    func warned(date: String, isWarned: Bool) async throws {
        try await ServedLedger.with { served in
            let app = try await served.ledger.apps.app(ServedLedger.app)
            let upload = Upload(appID: app.id, customer: "kim", receipt: Array("receipt".utf8), imported: true)
            _ = try await served.ledger.intake.store([upload])
            let journal = Journal()
            let tracker = Tracker(
                ledger: served.ledger, appStore: .answering(Self.answer(date)), options: TrackerOptions(),
                logger: journal.logger)
            _ = try await Worker(tracker).runOnce(maxSeconds: nil)
            let warnings = journal.lines.filter { $0.hasPrefix("warning") }
            #expect(warnings.count == (isWarned ? 1 : 0), "\(warnings)")
            #expect(warnings.allSatisfy { $0.contains("receipt.in_app[0]") }, "\(warnings)")
            let record = try await served.ledger.customers.record(of: "kim", app: ServedLedger.app)
            #expect(record.purchases.map(\.purchasedAt) == (isWarned ? [] : [Instant(milliseconds: 1_688_472_000_000)]))
        }
    }

    @Test("`explain` names it and does not say that there are no purchases")
    func explained() {
        func text(_ date: String) -> String {
            let now = Instant(milliseconds: 1_700_000_000_000)
            let body = Array(Self.answer(date).utf8)
            return AnswerExplanation(body: body, bundleID: nil, at: nil, previous: nil, now: now).text
        }
        #expect(text("soon").contains("left out, because it cannot be read: receipt.in_app[0]"))
        #expect(!text("soon").contains("holds no purchases"))
        #expect(text("04 Jul 23 12:00 GMT").contains("purchase 7: lamp, bought 2023-07-04T12:00:00.000Z"))
    }
}
