import Foundation
import JSON
import Subscriptions
import Testing
import Tracking

@testable import Server

/// The synthetic answers mean what `expected.json` says they mean, where that folder exists.
@Suite("Synthetic answers mean what is expected") struct ExplainFixtureTests {
    static let folder = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("shared/fixtures/synthetic")

    static var names: [String] {
        guard let expected = try? expectations() else {
            print("skipped: the folder of shared fixtures is not beside this checkout")
            return []
        }
        return expected.keys.sorted()
    }

    static func expectations() throws -> [String: Any] {
        let data = try Data(contentsOf: folder.appendingPathComponent("expected.json"))
        return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    @Test("An answer means what is expected", arguments: names)
    func anAnswerMeansWhatIsExpected(_ name: String) throws {
        let body = [UInt8](try Data(contentsOf: Self.folder.appendingPathComponent(name)))
        let expected = try Self.expectations()[name]
        let bundle: BundleID? = expected is String ? "com.example.tracker" : nil
        let explanation = AnswerExplanation(
            body: body, bundleID: bundle, at: nil, previous: nil, now: Instant(milliseconds: 0))
        let text = Data(explanation.json.rendered().utf8)
        let json = try #require(try JSONSerialization.jsonObject(with: text) as? [String: Any])
        guard let subscriptions = expected as? [[String: Any]] else {
            #expect(json["outcome"] as? String == "rejected")
            return
        }
        let reported = try #require(json["subscriptions"] as? [[String: Any]])
        #expect(reported.count == subscriptions.count)
        for (reported, subscription) in zip(reported, subscriptions) {
            for (key, value) in subscription {
                #expect(reported[key] as? NSObject == value as? NSObject, "\(key)")
            }
        }
    }

    @Test("An answer compared with itself has no events")
    func anAnswerComparedWithItselfHasNoEvents() throws {
        for name in Self.names {
            let body = [UInt8](try Data(contentsOf: Self.folder.appendingPathComponent(name)))
            let explanation = AnswerExplanation(
                body: body, bundleID: nil, at: nil, previous: body, now: Instant(milliseconds: 0))
            #expect(explanation.events?.isEmpty == true, "\(name)")
        }
    }
}
