import Testing

@Suite("The list of fast suites is true")
struct FastSuiteTests {
    @Test("Every suite that scripts/test --fast names exists")
    func names() throws {
        let list = try #require(try SourceTree.here.file("scripts/lib/fast_suites"), "the list is missing")
        let named = list.text.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }
        let declared = Set(
            try SourceTree.swiftSources().filter { $0.file.path.hasPrefix("Tests/") }.flatMap { file, source in
                let module = file.path.split(separator: "/")[1]
                return declaredTypes(in: source).map { "\(module).\($0)" }
            })
        #expect(!named.isEmpty)
        #expect(named == named.sorted())
        #expect(named.filter { !declared.contains($0) } == [])
    }
}
