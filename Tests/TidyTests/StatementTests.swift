import Foundation
import Testing

@Suite("SQL files say what they are for, and the program contains them as they are")
struct StatementTests {
    @Test("The first line of every SQL file says what it is for")
    func firstLine() throws {
        let files = try SourceTree.here.files(in: "sql", ending: [".sql"])
        #expect(!files.isEmpty)
        for file in files {
            #expect(file.text.hasPrefix("-- "), "\(file.path) must begin with '-- ' and its purpose")
        }
    }

    @Test("No two SQL files have one name, because the constants are named after the files")
    func names() throws {
        let files = try SourceTree.here.files(in: "sql/queries", ending: [".sql"])
        for (name, namesakes) in Dictionary(grouping: files, by: \.name) {
            #expect(namesakes.count == 1, "\(name): \(namesakes.map(\.path))")
        }
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
