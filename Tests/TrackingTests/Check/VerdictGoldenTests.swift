import Foundation
import Subscriptions
import Testing

@testable import Tracking

/// A difference from a golden is a bug, or a new verdict that has to be read before it is committed.
@Suite("Every answer has its golden verdict") struct VerdictGoldenTests {
    /// The app all our own answers are asked about.
    static let bundleID: BundleID = "com.example.app"

    @Test("Our own answers mean what their goldens say")
    func ourOwnAnswersMeanWhatTheirGoldensSay() throws {
        let answers = try OwnAnswers.all()
        #expect(!answers.isEmpty)
        let reported = answers.map { answer in
            let block = VerdictText.block(
                of: answer.name, body: answer.body, bundleID: Self.bundleID, previous: answer.before)
            return (answer.name, block)
        }
        for difference in try VerdictBook("answers.verdicts").differences(
            from: Dictionary(reported) { _, last in last })
        {
            Issue.record("\(difference)")
        }
    }

    @Test("Shared answers mean what their goldens say")
    func sharedAnswersMeanWhatTheirGoldensSay() throws {
        guard let folder = SharedAnswers.folder else { return }
        let reported = try SharedAnswers.all(in: folder).filter(\.isAnswer).map { answer in
            (answer.name, VerdictText.block(of: answer.name, body: answer.body, bundleID: nil))
        }
        for difference in try VerdictBook("shared.verdicts").differences(from: Dictionary(reported) { _, last in last })
        {
            Issue.record("\(difference)")
        }
    }

    /// Notifications, signed data, receipts and pictures of certificates are recognised as no answers, without a crash.
    @Test("No other shared file is taken for an answer")
    func noOtherSharedFileIsTakenForAnAnswer() throws {
        guard let folder = SharedAnswers.folder else { return }
        for file in try SharedAnswers.all(in: folder) where !file.isAnswer {
            let text = VerdictText.block(of: file.name, body: file.body, bundleID: nil)
            #expect(text.contains("\n  indeterminate "), "\(text)")
        }
    }

    @Test("What an answer takes back stands, and the text says until when")
    func whatIsTakenBackStands() throws {
        for (name, said) in [("refund-reversed.json", "the refund of"), ("purchase-refunded-since.json", nil)] {
            let answer = try #require(try OwnAnswers.all().first { $0.name == name })
            let explanation = AnswerExplanation(
                body: answer.body, bundleID: Self.bundleID, at: nil, previous: answer.before, now: VerdictText.now)
            #expect(explanation.text.contains("until a second answer says so") == (said != nil))
            #expect(said.map(explanation.text.contains) ?? true)
            #expect(explanation.held?.isEmpty == (said == nil))
            #expect(explanation.events?.contains { $0.event.kind == .refundReversed } == false)
        }
        // Backwards, the purchase's refund is missing.
        let purchase = try #require(try OwnAnswers.all().first { $0.name == "purchase-refunded-since.json" })
        let backwards = AnswerExplanation(
            body: try #require(purchase.before), bundleID: Self.bundleID, at: nil, previous: purchase.body,
            now: VerdictText.now)
        #expect(backwards.events?.contains { $0.event.kind == .refundReversed } == false)
    }

    @Test("Differences are readable")
    func differencesAreReadable() {
        let found = VerdictBook.difference("a\n  same\n  old\n  end", "a\n  same\n  new\n  more\n  end")
        #expect(found == " a\n   same\n-  old\n+  new\n+  more\n   end")
    }
}

/// Answers written for this project, one oddity a file.
enum OwnAnswers {
    struct Answer {
        let name: String
        let body: [UInt8]
        /// What was stored before, in `NAME.before.json`.
        let before: [UInt8]?
    }

    static let folder = VerdictBook.folder.appending(path: "answers")

    static func all() throws -> [Answer] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        return try names.filter { !$0.hasSuffix(".before.json") }.map { name in
            let before = name.replacing(".json", with: ".before.json")
            return Answer(
                name: name, body: try body(name),
                before: before != name && names.contains(before) ? try body(before) : nil)
        }
    }

    private static func body(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: folder.appending(path: name)))
    }
}

/// Answers of public projects beside this checkout, where they are there.
enum SharedAnswers {
    struct File {
        /// The path below the folder.
        let name: String
        let body: [UInt8]

        /// Whether it is a body verifyReceipt may answer with: an object with one of its statuses, or a broken body.
        var isAnswer: Bool {
            if name.contains("_body.") { return true }
            let object = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
            guard let status = object?["status"], let code = Int("\(status)") else { return false }
            return code == 0 || (21000...21199).contains(code)
        }
    }

    /// Nil where the project stands alone; says so.
    static let folder: URL? = {
        let folder = VerdictBook.folder.appending(path: "../../../shared/fixtures").standardizedFileURL
        guard FileManager.default.fileExists(atPath: folder.path) else {
            print("skipped: the folder of shared fixtures is not beside this checkout")
            return nil
        }
        return folder.resolvingSymlinksInPath()
    }()

    static func all(in folder: URL) throws -> [File] {
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
        return try names.compactMap { name in
            let file = folder.appending(path: name)
            guard try file.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else { return nil }
            return File(name: name, body: [UInt8](try Data(contentsOf: file)))
        }
    }
}
