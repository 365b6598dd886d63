import Foundation
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@testable import PerennialClient

@Suite("The examples of the client's guide are compiled and do what they say")
struct GuideTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Lines without their indentation.
    private static func lines(_ text: some StringProtocol) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map {
            $0.trimmingCharacters(in: .whitespaces)
        }
    }

    /// The examples in Swift of the guide.
    private static func examples() throws -> [[String]] {
        let guide = try String(contentsOf: root.appending(path: "docs/client.md"), encoding: .utf8)
        return guide.components(separatedBy: "```swift\n").dropFirst().map { rest in
            lines(rest.components(separatedBy: "\n```")[0])
        }
    }

    @Test("Every example of the guide is one that is compiled here")
    func compiled() throws {
        let folder = Self.root.appending(path: "Tests/PerennialClientTests")
        let source = Self.lines(
            try String(contentsOf: folder.appending(path: "GuideExamples.swift"), encoding: .utf8))
        let examples = try Self.examples()
        #expect(examples.count >= 6)
        for example in examples {
            let isThere = source.indices.contains { source[$0...].starts(with: example) }
            #expect(isThere, "\(example.joined(separator: "\n"))")
        }
    }

    @Test("The limits that the guide names are those of the code")
    func limits() throws {
        let guide = try String(contentsOf: Self.root.appending(path: "docs/client.md"), encoding: .utf8)
        let limits = UploadLimits()
        for text in [
            "`entriesMax` | \(limits.entriesMax.formatted(.number.locale(Locale(identifier: "en_US"))))",
            "`receiptBytesMax` | \(limits.receiptBytesMax >> 20) MiB",
            "`totalBytesMax` | \(limits.totalBytesMax >> 20) MiB", "`sendingMax` | \(limits.sendingMax)",
            "`retrySecondsMin` | \(Int(limits.retrySecondsMin)) s",
            "`retrySecondsMax` | \(Int(limits.retrySecondsMax / 60)) min",
        ] {
            #expect(guide.contains(text), "\(text)")
        }
    }

    @Test("A service's examples work")
    func service() async throws {
        let store = ScriptedServer()
        let server = store.server()
        store.say(nil)
        #expect(try await GuideExamples.errors(server) { Issue.record("\($0)") } == nil)
        store.say(
            ScriptedServer.Answer(
                status: 201, body: String(decoding: try JSONEncoder().encode(PlacedOrder.sample()), as: UTF8.self)))
        let kept = Mutex<NewOrder?>(nil)
        let order = try await GuideExamples.order(server) { new in kept.withLock { $0 = new } }
        #expect(try JSONDecoder().decode(PlacedOrder.self, from: order) == PlacedOrder.sample())
        let sent = store.requests.last?.value(forHTTPHeaderField: "Idempotency-Key")
        #expect(sent == kept.withLock { $0 }?.idempotencyKey)
        try await withFolder { folder in
            store.say(nil, .upload(finish: ["7"]))
            let (answers, answered) = AsyncStream.makeStream(of: [String].self)
            await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await GuideExamples.serviceQueue(server, folder: folder, receipt: "AQ==", transaction: "7") {
                        answered.yield([$0] + $1)
                    }
                }
                let first = await answers.first { _ in true }
                #expect(first == ["kim", "7"])
                group.cancelAll()
            }
        }
    }
}
