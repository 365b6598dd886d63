import Postgres
import Subscriptions
import TestSupport
import Testing

@testable import Tracking

/// One receipt in a ledger, and an App Store that answers by a script.
struct ScriptedLine: Sendable {
    let served: ServedLedger
    let tracker: Tracker
    let journal: Journal
    let receipt: ReceiptID
    private let store: ScriptedStore

    static func with(_ body: @escaping @Sendable (ScriptedLine) async throws -> Void) async throws {
        try await ServedLedger.with { served in
            let app = try await served.ledger.apps.app(ServedLedger.app)
            let upload = Upload(appID: app.id, customer: "kim", receipt: Array("receipt".utf8), imported: false)
            let receipt = try #require(try await served.ledger.intake.store([upload]).first).receiptID
            let (store, journal) = (ScriptedStore(), Journal())
            let tracker = Tracker(
                ledger: served.ledger, appStore: store.client, options: TrackerOptions(), logger: journal.logger)
            try await body(
                ScriptedLine(served: served, tracker: tracker, journal: journal, receipt: receipt, store: store))
        }
    }

    /// What Apple answers from now on, by a clock that is ahead.
    func answer(_ body: String, ahead: Delay = .zero) async throws {
        let now = try await served.ledger.now() + ahead
        let dated = body.replacing(
            #/"request_date_ms":"\d+"/#, with: "\"request_date_ms\":\"\(now.milliseconds)\"")
        store.say(dated)
    }

    func check() async throws -> Settled { try await tracker.check(receipt) }

    /// The rows of a query, each as one text: its columns joined by spaces.
    func rows(_ sql: String) async throws -> [String] {
        let line =
            "SELECT concat_ws(' ', VARIADIC ARRAY(SELECT v FROM json_each_text(row_to_json(q)) AS j(k, v))) AS line"
        let text = "\(line) FROM (\(sql)) q"
        return try await served.database.query(Statement(name: "test_\(text.hashValue)", sql: text)).map {
            try $0.text("line")
        }
    }
}
