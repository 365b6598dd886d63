import Testing

@Suite("Names and words are plain")
struct NameTests {
    @Test("No file, folder or type has a name that says nothing")
    func names() throws {
        for (file, source) in try SourceTree.swiftSources() {
            let parts = file.path.split(separator: "/").map { String($0.prefix { $0 != "." }) }
            #expect(!parts.contains(where: isEmptyName), "\(file.path) has a name that says nothing")
            let types = declaredTypes(in: source).filter(isEmptyName)
            #expect(types.isEmpty, "\(file.path) declares \(types)")
        }
    }

    @Test("Nothing ends the process on purpose")
    func processEnds() throws {
        for (file, source) in try SourceTree.swiftSources() {
            let calls = processEndingCalls(in: source)
            #expect(calls.isEmpty, "\(file.path): \(calls)")
        }
    }

    @Test("Comments, statements and documents are in plain English")
    func plainEnglish() throws {
        let tree = SourceTree.here
        for (file, source) in try SourceTree.swiftSources() where file.path.hasPrefix("Sources/") {
            let found = wordyLines(in: String(decoding: source.comments, as: UTF8.self))
            #expect(found.isEmpty, "\(file.path): \(found)")
        }
        let texts =
            try ["docs", "scripts", "sql"].flatMap { try tree.files(in: $0, ending: [""]) }
            + ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].compactMap { try tree.file($0) }
        for file in texts {
            let found = wordyLines(in: file.text)
            #expect(found.isEmpty, "\(file.path): \(found)")
        }
        #expect(wordyLines(in: "one line\nWho" + "ever reads this") == ["line 2: Who" + "ever reads this"])
        #expect(wordyLines(in: "No" + "body reads this\nif root; then echo nobody; fi").count == 1)
    }

    @Test("Comments and documents hold no promises, issue numbers or folders of one machine")
    func traces() throws {
        let tree = SourceTree.here
        for (file, source) in try SourceTree.swiftSources() {
            let comments = String(decoding: source.comments, as: UTF8.self)
            let found = unfinishedLines(in: comments) + issueNumberLines(in: comments) + homeFolderLines(in: file.text)
            #expect(found.isEmpty, "\(file.path): \(found)")
        }
        let folders = try ["docs", "scripts"].flatMap { try tree.files(in: $0, ending: [""]) }
        let statements = try tree.files(in: "sql", ending: [".sql", ".md"])
        let top = try [
            "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Dockerfile", "docker-compose.yml",
            "docker-compose.override.yml", ".ci/run", ".ci/demo", ".github/workflows/ci.yml",
            ".github/workflows/release.yml",
        ].compactMap { try tree.file($0) }
        for file in folders + statements + top {
            let found =
                unfinishedLines(in: file.text) + issueNumberLines(in: file.text) + homeFolderLines(in: file.text)
            #expect(found.isEmpty, "\(file.path): \(found)")
        }
    }
}
