import Ledger
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

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
            return Explanation(body: body, bundleID: nil, at: nil, previous: nil, now: now).text
        }
        #expect(text("soon").contains("left out, because it cannot be read: receipt.in_app[0]"))
        #expect(!text("soon").contains("holds no purchases"))
        #expect(text("04 Jul 23 12:00 GMT").contains("purchase 7: lamp, bought 2023-07-04T12:00:00.000Z"))
    }
}
