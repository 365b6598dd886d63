import Foundation
import JSON
import Subscriptions
import Testing
import TestSupport
import Tracking

@testable import Server

@Suite("Every input that an explanation cites matters") struct CitedInputTests {
    /// What an answer comes to for one subscription, and by which rule: of two that agree each is cited alone.
    static func outcome(_ body: [UInt8], of id: OriginalTransactionID, at: Instant) -> JSONValue? {
        let explanation = AnswerExplanation(body: body, bundleID: nil, at: at, previous: nil, now: at)
        guard let one = explanation.subscriptions.first(where: { $0.state.facts.originalTransactionID == id })
        else { return nil }
        var fields = one.members
        fields["because"] = .optional(one.verdict.because.first?.rule)
        return .object(fields)
    }

    @Test("Without a cited input the answer is another", arguments: ExplainFixtureTests.names)
    func withoutACitedInputTheAnswerIsAnother(_ name: String) throws {
        let body = [UInt8](
            try Data(contentsOf: ExplainFixtureTests.folder.appendingPathComponent(name)))
        let explanation = AnswerExplanation(
            body: body, bundleID: nil, at: nil, previous: nil, now: Instant(milliseconds: 0))
        for subscription in explanation.subscriptions {
            let id = subscription.state.facts.originalTransactionID
            let before = Self.outcome(body, of: id, at: explanation.at)
            for ground in subscription.verdict.because where !ground.path.isEmpty {
                let input = CitedInput(ground.path)
                let without = try #require(try input.removed(from: body), "\(input) leads nowhere")
                #expect(Self.outcome(without, of: id, at: explanation.at) != before, "\(ground.rule): \(input)")
            }
        }
    }

    @Test("A path that leads nowhere is found")
    func aPathThatLeadsNowhereIsFound() throws {
        let body = Array(#"{"latest_receipt_info": [{"expires_date_ms": "1", "transaction_id": "7"}]}"#.utf8)
        #expect(try CitedInput("latest_receipt_info[1].expires_date_ms").removed(from: body) == nil)
        #expect(try CitedInput("latest_receipt_info[0].auto_renew_status").removed(from: body) == nil)
        let without = try #require(try CitedInput("latest_receipt_info[0].expires_date_ms").removed(from: body))
        #expect(String(decoding: without, as: UTF8.self) == #"{"latest_receipt_info":[{"transaction_id":"7"}]}"#)
    }
}
