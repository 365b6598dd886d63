import Foundation
import Testing

/// A statement of a file of `sql/queries`: the lines from one `-- name:` to the next.
private struct Section: Equatable {
    let name: String
    let lines: [String]

    /// The sections of a file, and whether only comments come before the first one.
    static func all(in text: String) -> (sections: [Section], headIsComment: Bool) {
        let mark = "-- name: "
        let parts = text.split(separator: "\n", omittingEmptySubsequences: false).split(
            omittingEmptySubsequences: false, whereSeparator: { $0.hasPrefix(mark) })
        let names = text.split(separator: "\n").filter { $0.hasPrefix(mark) }.map { String($0.dropFirst(mark.count)) }
        let head = parts.first ?? []
        return (
            zip(names, parts.dropFirst()).map { Section(name: $0, lines: $1.map(String.init)) },
            head.allSatisfy { $0.isEmpty || $0.hasPrefix("--") }
        )
    }
}

@Suite("SQL files say what they are for, and the program contains them as they are")
struct StatementTests {
    @Test("The first line of every SQL file and of every statement says what it is for")
    func firstLine() throws {
        let files = try SourceTree.here.files(in: "sql", ending: [".sql"])
        #expect(!files.isEmpty)
        for file in files {
            #expect(file.text.hasPrefix("-- "), "\(file.path) must begin with '-- ' and its purpose")
        }
        for file in files where file.path.hasPrefix("sql/queries/") {
            let (sections, headIsComment) = Section.all(in: file.text)
            #expect(!sections.isEmpty && headIsComment, "\(file.path): a statement begins with '-- name: its_name'")
            for section in sections {
                let purpose = section.lines.first ?? ""
                #expect(purpose.hasPrefix("-- "), "\(file.path): \(section.name) must begin with its purpose")
                #expect(section.name.wholeMatch(of: #/[a-z][a-z0-9]*(?:_[a-z0-9]+)*/#) != nil, "\(section.name)")
            }
        }
    }

    @Test("No two statements have one name, because the constants are named after them")
    func names() throws {
        let files = try SourceTree.here.files(in: "sql/queries", ending: [".sql"])
        #expect(files.allSatisfy { $0.path.split(separator: "/").count == 3 }, "a room is one file, not a folder")
        let sections = files.flatMap { file in Section.all(in: file.text).sections.map { (file.path, $0.name) } }
        for (name, namesakes) in Dictionary(grouping: sections, by: \.1) {
            #expect(namesakes.count == 1, "\(name): \(namesakes.map(\.0))")
        }
    }

    /// With statistics from before the rows came, a plan computes a function that is only joined once for each row.
    @Test("Verification calls a function about many things where it is computed once")
    func verifiedOnce() throws {
        let files = try SourceTree.here.files(in: "sql/queries", ending: [".sql"])
        var calls = 0
        for section in try #require(
            files.first { $0.path.hasSuffix("invariants.sql") }.map { Section.all(in: $0.text) }
        )
        .sections {
            for (place, line) in section.lines.enumerated()
            where line.contains("LATERAL ledger.") && line.contains(".ids") {
                calls += 1
                #expect(section.lines[place - 1].hasSuffix("AS MATERIALIZED ("), "\(section.name): \(line)")
            }
        }
        #expect(calls == 5)
    }

    @Test("Sections are found")
    func sections() {
        let (found, headIsComment) = Section.all(
            in: "-- A room.\n\n-- name: one\n-- Does.\nSELECT 1\n\n-- name: two\nSELECT 2")
        #expect(headIsComment)
        #expect(
            found == [
                Section(name: "one", lines: ["-- Does.", "SELECT 1", ""]), Section(name: "two", lines: ["SELECT 2"]),
            ])
        #expect(!Section.all(in: "-- A room.\nSELECT 0\n-- name: one\n-- Does.").headIsComment)
    }

    @Test("What scripts/embed wrote is what the files say")
    func embedded() throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["bash", SourceTree.here.root.appending(path: "scripts/embed").path, "--check"]
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "run scripts/embed, and commit what it writes")
    }
}
