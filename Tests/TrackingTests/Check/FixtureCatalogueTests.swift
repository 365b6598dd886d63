import Foundation
import Testing

@testable import Subscriptions

/// `Tests/Fixtures/README.md` lists every answer of ours, and each row and bug has one.
@Suite("The catalogue of fixtures is complete") struct FixtureCatalogueTests {
    /// The rows of the decision table as `DecisionTableTests` numbers them.
    static let rows = 1...15
    /// The numbers of the bug catalogue.
    static let bugs = 1...40

    @Test("Every file has a line and every line a file")
    func everyFileHasALineAndEveryLineAFile() throws {
        let listed = try FixtureCatalogue().files
        let names = try FileManager.default.contentsOfDirectory(atPath: OwnAnswers.folder.path)
        let stored = names.filter { $0.hasSuffix(".before.json") }
        let answers = Set(names).subtracting(stored)
        let unpaired = answers.symmetricDifference(listed.map(\.name)).sorted()
        #expect(unpaired == [], "a file without line, or a line without file")
        #expect(listed.count == answers.count, "a file with two lines")
        for name in stored {
            #expect(answers.contains(name.replacing(".before.json", with: ".json")), "\(name) has no answer after it")
        }
        for file in listed {
            #expect(!file.shows.isEmpty && !file.places.isEmpty, "\(file.name) says nothing")
        }
    }

    @Test("Every row of the decision table has a file of its name")
    func everyRowOfTheDecisionTableHasAFileOfItsName() throws {
        let files = try FixtureCatalogue().files
        for row in Self.rows {
            let prefix = row < 10 ? "row-0\(row)-" : "row-\(row)-"
            let named = files.filter { $0.name.hasPrefix(prefix) }
            #expect(!named.isEmpty, "no file \(prefix)")
            #expect(named.allSatisfy { $0.places.contains("row \(row)") }, "\(named.map(\.name))")
        }
    }

    @Test("Every bug has a file of its name or a reason")
    func everyBugHasAFileOfItsNameOrAReason() throws {
        let catalogue = try FixtureCatalogue()
        for bug in Self.bugs {
            let prefix = bug < 10 ? "bug-0\(bug)-" : "bug-\(bug)-"
            let named = catalogue.files.filter { $0.name.hasPrefix(prefix) }
            let isExcused = catalogue.reasons.contains("bug \(bug)")
            #expect(named.isEmpty == isExcused, "bug \(bug): \(named.map(\.name))")
            #expect(named.allSatisfy { $0.places.contains("bug \(bug)") }, "\(named.map(\.name))")
        }
    }

    @Test("Every rule decides somewhere")
    func everyRuleDecidesSomewhere() throws {
        let goldens = try VerdictBook("answers.verdicts").blocks().values.joined(separator: "\n")
        let reasons = try FixtureCatalogue().reasons
        for rule in Rule.allCases {
            let decides = goldens.contains("because \(rule.rawValue):")
            #expect(decides != reasons.contains("rule `\(rule.rawValue)`"), "\(rule.rawValue)")
        }
    }
}

/// The tables of `Tests/Fixtures/README.md`.
struct FixtureCatalogue {
    struct File {
        let name: String
        let shows: String
        /// What it is an example of: `row 7`, `bug 11`, `facts 4.3`.
        let places: Set<String>
    }

    let files: [File]
    /// What has no file, for a reason.
    let reasons: Set<String>

    init() throws {
        let text = try String(contentsOf: VerdictBook.folder.appending(path: "README.md"), encoding: .utf8)
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("| ") }.map { line in
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        files = rows.filter { $0.count == 3 && $0[0] != "File" }.map { row in
            File(name: row[0].replacing("`", with: ""), shows: row[1], places: Self.places(row[2]))
        }
        reasons = rows.filter { $0.count == 2 && $0[0] != "What" }.reduce(into: []) { $0.formUnion(Self.places($1[0])) }
    }

    private static func places(_ cell: String) -> Set<String> {
        Set(cell.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
    }
}
