import JSON
import Server
import Subscriptions
import Testing
import TestSupport

@testable import Tracking

@Suite struct CustomerExplanationJSONTests {
    private func json(of customer: String, in served: ServedLedger) async throws -> String {
        try await CustomerExplanation(in: served.ledger, app: ServedLedger.app, customer: customer).json.rendered()
    }

    @Test func anUnknownCustomerIsNamedSo() async throws {
        try await ServedLedger.with { served in
            let text = try await json(of: "ann", in: served)
            #expect(text.contains(#""known":false"#))
        }
    }

    @Test func aSourceIsNamedByItsKind() async throws {
        try await ServedLedger.with { served in
            let app = try await served.ledger.apps.app(ServedLedger.app)
            let word = Provisional(productID: "monthly", until: try await served.ledger.now() + .hours(1))
            _ = try await served.ledger.intake.store([
                Upload(
                    appID: app.id, customer: "ann", receipt: Array("receipt".utf8), imported: true, provisional: word)
            ])
            // An explanation is of a whole millisecond, and the word came in the midst of one.
            try await Task.sleep(for: .milliseconds(2))
            let text = try await json(of: "ann", in: served)
            #expect(text.contains(#""kind":"provisional""#))
        }
    }
}
