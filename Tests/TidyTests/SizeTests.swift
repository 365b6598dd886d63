import Testing

@Suite("Files are small and functions are short")
struct SizeTests {
    /// Lines of one file at most.
    static let fileLinesMax = 500
    /// A function stays under this many lines.
    static let functionLinesLimit = 60
    /// Lines of README.md, which is an entrance, not a manual.
    static let readmeLinesMax = 150

    @Test("No Swift file, query, report, migration or script is longer than 500 lines")
    func files() throws {
        let tree = SourceTree.here
        let files =
            try tree.swiftFiles() + tree.files(in: "sql/queries", ending: [".sql"])
            + tree.files(in: "sql/reports", ending: [".sql"]) + tree.files(in: "sql/migrations", ending: [".sql"])
            + tree.files(in: "scripts", ending: [""])
        #expect(!files.isEmpty)
        for file in files {
            #expect(file.lineCount <= Self.fileLinesMax, "\(file.path) has \(file.lineCount) lines")
        }
    }

    @Test("No function has 60 lines or more")
    func functions() throws {
        for (file, source) in try SourceTree.swiftSources() {
            for function in FunctionLength.all(in: source) {
                #expect(
                    function.lineCount < Self.functionLinesLimit,
                    "\(file.path):\(function.line) \(function.name) has \(function.lineCount) lines")
            }
        }
    }

    @Test("README.md has at most 150 lines")
    func readme() throws {
        let readme = try #require(try SourceTree.here.file("README.md"), "README.md is missing")
        #expect(readme.lineCount <= Self.readmeLinesMax)
    }

    @Test("README.md prints the function that does a check as it is in the source")
    func program() throws {
        let readme = try #require(try SourceTree.here.file("README.md"), "README.md is missing")
        let begin = try #require(readme.text.firstRange(of: "    func check("), "README.md prints no function")
        let end = try #require(readme.text[begin.lowerBound...].firstRange(of: "\n    }\n"))
        let source = try #require(try SourceTree.here.file("Sources/Tracking/Check/Check.swift"))
        #expect(source.text.contains(readme.text[begin.lowerBound..<end.upperBound]))
    }

    @Test("Lines are counted as an editor does")
    func lineCount() {
        #expect(SourceTree.File(path: "a", text: "").lineCount == 0)
        #expect(SourceTree.File(path: "a", text: "one\n").lineCount == 1)
        #expect(SourceTree.File(path: "a", text: "one\ntwo").lineCount == 2)
    }
}
