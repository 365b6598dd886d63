import Foundation
import JSON
import Postgres
import Server
import SQL
import Subscriptions
import Testing
import TestSupport
import Tracking

@testable import perennial

@Suite("Every id is text in JSON, for readers whose numbers are not exact") struct TextIdTests {
    /// The ids in a value, and the paths of those that are numbers.
    private struct Ids {
        var paths: Set<String> = []
        var numbers: [String] = []

        mutating func find(in value: JSONValue, at path: String) {
            switch value {
            case .array(let values): for one in values { find(in: one, at: path) }
            case .object(let fields):
                for (name, field) in fields { find(in: field, at: path.isEmpty ? name : "\(path).\(name)") }
            case .null, .bool: break
            case .string, .integer, .number:
                guard path.hasSuffix("_id") || path.hasSuffix("next_check_of_receipt") else { return }
                paths.insert(path)
                if case .integer = value { numbers.append(path) }
            }
        }
    }

    private func ids(in value: JSONValue) -> Ids {
        var ids = Ids()
        ids.find(in: value, at: "")
        return ids
    }

    @Test func `lists, an export, an explanation and a report have no id as a number`() async throws {
        try await ServedLedger.with { served in
            let ledger = served.ledger
            var monthly = CatalogProduct(id: "monthly", kind: .autoRenewable, entitlements: ["pro"])
            monthly.deliversSince = Instant(milliseconds: 0)
            try await ledger.apps.applyCatalog([monthly], to: ServedLedger.app)
            _ = try await Tracker.quiet(ledger, appStore: .answering(Sample.verified())).submit(
                Submission(bundleID: ServedLedger.app, customer: "kim", receipt: Sample.receipt()))
            let app = try await ledger.apps.app(ServedLedger.app)
            _ = try await ledger.intake.store([
                Upload(appID: app.id, customer: "kim", receipt: Array("r".utf8), imported: true)
            ])
            let due = try await ledger.deliveries.read(of: ServedLedger.app, after: 0, limit: 10)
            let report = ReportStatement(try #require(Reports.all.first { $0.name == "never_verified" }).text)
            let waiting = try await served.database.transaction {
                try Listing(of: report, report.values(["minutes": "0"], report: "never_verified"), in: $0)
            }
            let shown: [(json: JSONValue, ids: Set<String>)] = [
                (Listing(keys: try await ledger.apps.keys()).json, ["key_id"]),
                (
                    Listing(receipts: try await ledger.customers.receipts(limit: 10)).json, ["receipt_id", "bundle_id"]
                ),
                (Listing(due.deliveries).json, ["delivery_id", "transaction_id"]),
                (try await ledger.customers.export("kim", of: ServedLedger.app).json, ["receipts.receipt_id"]),
                (
                    try await CustomerExplanation(in: ledger, app: ServedLedger.app, customer: "kim").json,
                    [
                        "receipts.receipt_id", "subscriptions.next_check_of_receipt",
                        "subscriptions.because.observation.observation_id",
                    ]
                ),
                (waiting.json, ["receipt_id"]),
            ]
            for one in shown {
                let found = ids(in: one.json)
                #expect(found.numbers.isEmpty, "\(one.json.rendered())")
                #expect(found.paths.isSuperset(of: one.ids), "\(found.paths)")
            }
        }
    }

    @Test func `the description of the API has no id as a number`() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/Server/HTTP/openapi.yaml")
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        let ids = lines.filter { $0.contains(/^ +[a-z_]*_ids?: \{/) }
        #expect(ids.count > 20)
        #expect(ids.filter { $0.contains("integer") } == [])
    }
}
